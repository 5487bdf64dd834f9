"""Outgoing requests of scripts, over real connections, and the secrets in them."""

import asyncio
from collections.abc import Callable

import orjson
import pytest

from mcphost.kinds.script.requests import LIMITS
from mcphost.kinds.script.surroundings import stubs
from mcphost.sandbox.pool import Sandbox
from tests.egress.conftest import Arrived, Handler, Service, answer, echo, opened, running, write
from tests.kinds.loopback_http import Outgoing, base, outgoing
from tests.kinds.rounds_with_client import accept, asking_call
from tests.kinds.script.script_calls import DrivenScript

KEY = "sesame/open &you"


def calling(source: str, sandbox: Sandbox, service: Service, http: Outgoing) -> DrivenScript:
    """Return a call of a script with the address of a service."""
    return DrivenScript(source, sandbox, asking_call({"base": base(service)}), http=http)


async def test_a_request_is_sent_and_its_response_returned_to_the_script(sandbox: Sandbox):
    source = """
    def f(base: str) -> list:
        got = http.post(base + "/a?b=1", params={"c": "d e"}, json={"n": [1, None]}, headers={"X-A": "b"})
        return [got.status, got.ok, got.headers["x-made"], got.json()]
    """
    async with outgoing(answer(201, b'{"id": 7}', X_Made="yes")) as (service, http):
        driven = calling(source, sandbox, service, http)
        assert await driven.completes() == [201, True, "yes", {"id": 7}]
    (arrived,) = service.arrived
    assert (arrived.method, arrived.path) == ("POST", "/a?b=1&c=d%20e")
    assert orjson.loads(arrived.body) == {"n": [1, None]}
    assert arrived.headers["content-type"] == "application/json"
    assert arrived.headers["x-a"] == "b" and arrived.headers["idempotency-key"]


@pytest.mark.parametrize("method", ["get", "delete"])
async def test_every_method_can_be_sent(sandbox: Sandbox, method: str):
    source = f"def f(base: str) -> int:\n return http.{method}(base, data='x').status"
    async with outgoing(answer(body=b"")) as (service, http):
        assert await calling(source, sandbox, service, http).completes() == 200
    (arrived,) = service.arrived
    assert (arrived.method, arrived.body) == (method.upper(), b"x")
    assert ("idempotency-key" in arrived.headers) == (method not in ("get", "head"))


async def test_a_secret_reaches_the_request_and_never_the_sandbox(sandbox: Sandbox):
    source = """
    def f(base: str) -> dict:
        key = secret("key")
        got = http.post(base, params={"k": key}, headers={"Authorization": "Bearer " + key}, json={"a": [key]})
        elicit("go", "Go on?", {"ok": bool})
        return {"handle": key, "text": got.text, "header": got.headers["x-echo"]}
    """
    async with outgoing(echo, key=KEY) as (service, http):
        driven = calling(source, sandbox, service, http)
        await driven.asks()
        journal = str(driven.journal)
        done = await driven.completes(go=accept(ok=True))
    (arrived,) = service.arrived
    assert arrived.headers["authorization"] == f"Bearer {KEY}"
    assert orjson.loads(arrived.body) == {"a": [KEY]}
    assert arrived.path == "/?k=sesame%2Fopen%20%26you"
    assert done["header"] == "Bearer [secret]"
    assert done["text"].count("[secret]") == 3  # in the path, the header and the body
    assert not any(part in f"{done}{journal}" for part in (KEY, "sesame"))


def redirecting(location: Callable[[Arrived], str]) -> Handler:
    async def handler(request: Arrived, writer: asyncio.StreamWriter) -> None:
        if request.path.startswith("/start"):
            write(writer, 302, b"", Location=location(request))
        else:
            await echo(request, writer)

    return handler


TELLING = """
def f(base: str) -> str:
    try:
        got = http.get(base + "/start", params={"k": secret("key")}, headers={"Authorization": secret("key")})
        return got.text + str(got.headers) + str(got.status)
    except RuntimeError as error:
        return "refused: " + str(error)
"""


async def test_a_redirect_within_the_service_reveals_no_secret(sandbox: Sandbox):
    handler = redirecting(lambda request: f"/next?{request.path.partition('?')[2]}")
    async with outgoing(handler, key=KEY) as (service, http):
        told = await calling(TELLING, sandbox, service, http).completes()
    assert service.arrived[1].headers["authorization"] == KEY
    assert "sesame" in service.arrived[1].path
    assert "[secret]" in told and "sesame" not in told


@pytest.mark.parametrize("carrying", [True, False])
async def test_a_redirect_to_another_service_carries_no_secret(sandbox, carrying):
    async with running(echo) as other:

        def unreachable(request: Arrived) -> str:
            query = request.path.partition("?")[2] if carrying else ""
            return f"{base(other)}/away?{query}"

        async with running(redirecting(unreachable)) as service, opened(service, other) as egress:
            http = Outgoing(egress, service, other, key=KEY)
            told = await calling(TELLING, sandbox, service, http).completes()
    assert told.startswith("refused: ") == carrying
    assert "sesame" not in told
    assert [each.path for each in other.arrived] == ([] if carrying else ["/away"])
    assert all("authorization" not in each.headers for each in other.arrived)


async def test_an_error_contains_the_name_of_a_secret_and_never_its_value(sandbox: Sandbox):
    async with running(echo) as service, running(echo) as other, opened(service, other) as egress:
        http = Outgoing(egress, other, service, key=KEY)
        told = await calling(TELLING, sandbox, service, http).completes()
    assert "The secret 'key' may not go to" in told and "sesame" not in told
    assert not service.arrived


async def test_a_secret_handle_works_after_a_replay(sandbox: Sandbox):
    source = """
    def f(base: str) -> str:
        key = secret("key")
        elicit("go", "Go on?", {"ok": bool})
        return http.get(base, headers={"X-Key": key}).text
    """
    for lost in (False, True):
        async with outgoing(echo, key=KEY) as (service, http):
            driven = calling(source, sandbox, service, http)
            await driven.asks()
            if lost:
                driven.lose_the_paused_script()
            await driven.completes(go=accept(ok=True))
        assert service.arrived[0].headers["x-key"] == KEY


async def test_a_caller_cannot_name_a_secret(sandbox: Sandbox):
    """The text of a handle has a part that differs in each call, and that no caller knows."""
    source = """
    def f(base: str, text: str) -> str:
        handle = secret("key")
        http.post(base, json=text)
        return handle
    """
    async with outgoing(answer(), key=KEY) as (service, http):
        arguments = {"base": base(service), "text": "secret:key:"}
        handle = await DrivenScript(source, sandbox, asking_call(arguments), http=http).completes()
        call = asking_call({**arguments, "text": handle})
        assert await DrivenScript(source, sandbox, call, http=http).completes() != handle
    assert [orjson.loads(each.body) for each in service.arrived] == ["secret:key:", handle]


REFUSED = {
    'http.get(base.replace("127", secret("key")))': "not into the address",
    'http.get(base, headers={"X": secret("key")})': "invalid characters",
    'http.get(base, headers={"X": secret("unknown")})': "no secret 'unknown'",
    'http.get(base, headers={"Host": "x.example"})': "must not set the header 'host'",
    'http.post(base, data="a=" + secret("key"))': 'a field of a form, data={"name": secret',
    "http.post(base, data=[1])": "a text or an object",
    "http.get(5)": "is a text",
    'http.post(base, json={"a": 1}, data={"b": 1})': "`json` or `data`, not both",
    'http.get(base, headers=["X"])': "`headers` of a request is an object",
    'http.get(base, params=["X"])': "`params` of a request is an object",
    'http.get(base, params={"a": 1, "d": {"x": 1}})': "`params`: 'd' has a list or an object",
    'http.get(base, params={"d": [[1]]})': "`params`: 'd' has a list or an object",
    'http.post(base, data={"d": [{"x": 1}]})': "`data`: 'd' has a list or an object",
    'http.get(base, headers={"X-A": [1]})': "`headers`: 'X-A' is a list or an object",
    'http.get(base, headers={"X-A": {}})': "`headers`: 'X-A' is a list or an object",
    'http.get("https://x.example/")': "not among the allowed hosts",
    'http.get("ftp://x.example/")': "must begin with https://",
}


@pytest.mark.parametrize("sent", REFUSED)
async def test_a_forbidden_request_is_refused(sandbox, sent, caplog):
    source = f"""
    def f(base: str) -> str:
        try:
            {sent}
        except RuntimeError as error:
            return str(error)
        return "sent"
    """
    async with outgoing(answer(), key="two\r\nlines") as (service, http):
        driven = calling(source, sandbox, service, http)
        told = await driven.completes()
    assert REFUSED[sent] in told and "lines" not in told
    assert not service.arrived
    assert "a request of a script failed" not in caplog.text


async def test_a_response_that_is_too_large_is_refused(sandbox: Sandbox):
    source = """
    def f(base: str) -> str:
        try:
            return http.get(base).text
        except RuntimeError as error:
            return str(error)
    """
    async with outgoing(answer(body=b"x" * (LIMITS.response_bytes + 1))) as (service, http):
        assert "more than" in await calling(source, sandbox, service, http).completes()


VALUES = {
    '{"a": [1, 2], "b": None, "c": True}': "a=1&a=2&c=true",
    '{"a": (1.5, False, None, "x y"), "b": [], "c": ""}': "a=1.5&a=false&a=x{blank}y&c=",
    '{"é": "ü", "a b": "c&d=e", "n": 2**40}': "%C3%A9=%C3%BC&a{blank}b=c%26d%3De&n=1099511627776",
    "{}": "",
}


@pytest.mark.parametrize("fields", VALUES)
async def test_query_and_form_values_are_written_as_in_json(sandbox, fields):
    source = f"""
    def f(base: str) -> int:
        http.get(base, params={fields})
        return http.post(base, data={fields}).status
    """
    async with outgoing(answer()) as (service, http):
        await calling(source, sandbox, service, http).completes()
    asked, sent = service.arrived
    assert asked.path.partition("?")[2] == VALUES[fields].format(blank="%20")
    assert sent.body.decode() == VALUES[fields].format(blank="+")
    if sent.body:
        assert sent.headers["content-type"] == "application/x-www-form-urlencoded"


async def test_header_values_are_written_as_in_json(sandbox: Sandbox):
    source = """
    def f(base: str) -> int:
        return http.get(base, headers={"X-A": None, "X-B": True, "X-C": 1.5, "X-D": "é"[:0]}).status
    """
    async with outgoing(answer()) as (service, http):
        await calling(source, sandbox, service, http).completes()
    headers = service.arrived[0].headers
    assert {name: value for name, value in headers.items() if name.startswith("x-")} == {
        "x-b": "true",
        "x-c": "1.5",
        "x-d": "",
    }


async def test_a_secret_may_be_a_form_field(sandbox: Sandbox):
    source = """
    def f(base: str) -> dict:
        form = {"grant_type": "client_credentials", "client_secret": secret("key"), "a": ["x", "y" + secret("key")]}
        got = http.post(base, data=form)
        return {"sent": str(form), "text": got.text}
    """
    async with outgoing(echo, key=KEY) as (service, http):
        done = await calling(source, sandbox, service, http).completes()
    (arrived,) = service.arrived
    assert arrived.body == (
        b"grant_type=client_credentials&client_secret=sesame%2Fopen+%26you&a=x&a=ysesame%2Fopen+%26you"
    )
    assert "sesame" not in str(done)


async def test_response_headers_are_case_insensitive(sandbox: Sandbox):
    source = """
    def f(base: str) -> dict:
        headers = http.get(base).headers
        names = ["Content-Type", "content-type", "CONTENT-TYPE", "link", "Link"]
        return {
            "values": [headers[name] for name in names],
            "got": [headers.get(name) for name in names],
            "in": [name in headers for name in names],
            "missing": [headers.get("X-Missing"), headers.get("X-Missing", "no"), "X-Missing" in headers],
            "names": sorted(headers),
            "items": dict(headers.items())["link"],
            "all": headers,
        }
    """
    handler = answer(Link='<https://x.example/2>; rel="next"', Content_Type="text/plain")
    async with outgoing(handler) as (service, http):
        driven = calling(source, sandbox, service, http)
        done = await driven.completes()
    link = '<https://x.example/2>; rel="next"'
    assert done["values"] == done["got"] == ["text/plain"] * 3 + [link] * 2
    assert done["in"] == [True] * 5
    assert done["missing"] == [None, "no", False]
    assert {"content-type", "link"} <= set(done["names"]) and done["names"] == sorted(done["all"])
    assert done["items"] == done["all"]["link"] == link


async def test_unsupported_uses_of_response_headers_are_refused_when_the_script_is_saved(sandbox):
    for use in ("len(headers)", "dict(headers)", "{**headers}", 'headers["a"] = "b"'):
        source = f"def f() -> None:\n headers = http.get('https://x.example/').headers\n {use}\n"
        (problem,) = sandbox.check("acme", source, stubs(waits=False))
        assert problem["line"] == 3, (use, problem)


async def test_unpaired_surrogates_in_json_are_replaced(sandbox: Sandbox):
    source = """
    def f(base: str) -> list:
        return [http.get(base).json(), http.get(base).text]
    """
    async with outgoing(answer(body=b'{"a": "x\\ud83d"}')) as (service, http):
        value, text = await calling(source, sandbox, service, http).completes()
    assert value == {"a": "x\ufffd"}
    assert orjson.loads(text) == value
