"""Calls of HTTP tools to real services: results, errors, limits, repetitions and secrets."""

import asyncio
from base64 import b64encode
from collections.abc import Iterator
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any

import orjson
import pytest

from mcphost.kinds.http.replies import MAX_DEPTH
from mcphost.runtime.outcomes import FailureKind
from mcphost.runtime.ports import RoundLimits
from mcphost.sandbox.pool import Sandbox, SandboxFullError
from tests.egress.conftest import Arrived, Handler, Service, answer, echo, write
from tests.kinds.http.http_tool_calls import REFUND, DrivenHttp, by_body, in_turn
from tests.kinds.loopback_http import base, outgoing
from tests.kinds.rounds_with_client import DECLINE, accept

KEY = "sesame/open &you"
JSON = {"Content_Type": "application/json"}
PNG = b"\x89PNG\r\n\x1a\n--\r\n\0"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    pool = Sandbox(1, wait_seconds=30)
    yield pool
    pool.close()


def tool(service: Service, method: str = "GET", **others: Any) -> dict[str, Any]:
    """Return a configuration; `response` and others of the tool are told from the request's."""
    outer = ("response", "questions", "output_schema", "input_schema")
    config = {name: others.pop(name) for name in outer if name in others}
    return {**config, "request": {"url": f"{base(service)}/orders", "method": method, **others}}


async def test_a_call_sends_the_request_and_returns_the_response():
    async with outgoing(answer(body=b'{"left": 7}', **JSON)) as (service, http):
        query = [{"name": "city", "value": "{arguments.city}"}]
        driven = DrivenHttp(tool(service, query=query), http, {"city": "Bern"})
        assert await driven.completes() == {"left": 7}
    (arrived,) = service.arrived
    assert (arrived.method, arrived.path) == ("GET", "/orders?city=Bern")


async def refusal(
    handler: Handler,
    method: str = "GET",
    arguments: Any = None,
    driving: Any = None,
    secrets: Any = None,
    **config: Any,
) -> tuple[str, list[Arrived]]:
    """Return the text of a result that must be an error, and what the service read."""
    async with outgoing(handler, **(secrets or {})) as (service, http):
        driven = DrivenHttp(tool(service, method, **config), http, arguments, **(driving or {}))
        return await driven.refuses(), service.arrived


async def test_arguments_must_fit_the_input_schema():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    async with outgoing(answer()) as (service, http):
        failure = await DrivenHttp(tool(service, input_schema=schema), http, {"n": "x"}).fails()
    assert failure.kind is FailureKind.INVALID_ARGUMENTS
    assert not service.arrived


async def silent(request: Arrived, writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


LEFT = {"type": "object", "properties": {"left": {"type": "integer"}}, "required": ["left"]}
UNPROMISED = "The service's response is not what was promised: "
PLAIN = {"Content_Type": "text/plain"}


@pytest.mark.parametrize(
    ("handler", "config", "words"),
    [
        (answer(body=b'{"left": "x"}', **JSON), {"output_schema": LEFT}, UNPROMISED),
        (answer(body=b"x", **PLAIN), {"output_schema": {"type": "object"}}, UNPROMISED),
        (
            answer(404, b'{"why": "gone"}', **JSON),
            {"output_schema": LEFT},
            'The service answered with status 404:\n{"why": "gone"}',
        ),
        (silent, {"timeout_seconds": 0.2, "retries": 0}, "did not answer"),
        (answer(body=b"x" * 101), {"response": {"most_bytes": 100}}, "more than 100 bytes"),
        (
            answer(body=b"x" * 500, **PLAIN),
            {"driving": {"limits": RoundLimits(20, result_bytes=100)}},
            "The result is too large: more than 100 bytes.",
        ),
        (
            answer(body=b"<a>", Content_Type="text/html"),
            {"response": {"select": "a"}},
            "The service's response is not the JSON that it should be",
        ),
        (answer(), {"url": "https://x.example/"}, "not among the allowed hosts"),
    ],
)
async def test_an_error_of_the_service_is_an_error_of_the_call(handler, config, words):
    assert words in (await refusal(handler, **config))[0]


async def test_a_select_expression_determines_the_result(sandbox: Sandbox):
    body = b'{"items": [{"n": 1, "x": 0}, {"n": 2}]}'
    async with outgoing(answer(body=body, **JSON)) as (service, http):
        config = tool(service, response={"select": "items[].n"})
        assert await DrivenHttp(config, http, search=sandbox.search).completes() == [1, 2]


@pytest.mark.parametrize(
    ("select", "words"),
    [
        ("abs(@)", "cannot be mapped: In function abs()"),
        ("|".join(["[@, @]"] * 40), "cannot be mapped: "),
    ],
)
async def test_a_failing_or_expensive_select_expression_is_an_error_of_the_call(
    sandbox, select, words
):
    async with outgoing(answer(body=b'{"a": 1}', **JSON)) as (service, http):
        config = tool(service, response={"select": select})
        assert words in (await DrivenHttp(config, http, search=sandbox.search).refuses())
        plain = tool(service, response={"select": "a"})
        assert await DrivenHttp(plain, http, search=sandbox.search).completes() == 1


async def test_unpaired_surrogates_in_json_are_replaced():
    async with outgoing(answer(body=b'{"a":"x\\ud83d"}', **JSON)) as (service, http):
        result = await DrivenHttp(tool(service), http).result()
    assert result["structuredContent"] == {"a": "x\ufffd"}


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 300 + b"]" * 300,
        b'{"a": 123456789012345678901234567890}',
        b'"\\ud800"',
    ],
)
async def test_unusual_json_never_breaks_a_call(body: bytes):
    async with outgoing(answer(body=body, **JSON)) as (service, http):
        result = await DrivenHttp(tool(service), http).result()
    assert result["content"][0]["type"] == "text"


@pytest.mark.parametrize(
    ("method", "config", "attempts"),
    [
        ("GET", {}, 3),
        ("GET", {"retries": 0}, 1),
        ("GET", {"repeatable": False}, 1),
        ("PUT", {}, 3),
        ("POST", {}, 1),
        ("POST", {"repeatable": True}, 3),
    ],
)
async def test_only_repeatable_requests_are_resent(method, config, attempts):
    async with outgoing(answer(503, b"")) as (service, http):
        assert "status 503" in await DrivenHttp(tool(service, method, **config), http).refuses()
    assert len(service.arrived) == attempts
    keys = {each.headers.get("idempotency-key") for each in service.arrived}
    assert len(keys) == 1 and (keys == {None}) == (method == "GET")


def moved(location: str) -> Handler:
    async def handler(request: Arrived, writer: asyncio.StreamWriter) -> None:
        if request.path == "/orders":
            write(writer, 307, b"", Location=location)
        else:
            await echo(request, writer)

    return handler


@pytest.mark.parametrize("redirects", [0, 1])
async def test_redirects_are_followed_only_if_the_author_allows_it(redirects: int):
    async with outgoing(moved("/new")) as (service, http):
        driven = DrivenHttp(tool(service, redirects=redirects), http)
        if redirects:
            await driven.result()
        else:
            assert "redirects, which is not followed" in await driven.refuses()
    assert len(service.arrived) == 1 + redirects


async def test_a_secret_echoed_by_the_service_is_masked():
    def echoed(request: Arrived) -> bytes:
        return orjson.dumps([request.path, request.headers, request.body.decode()])

    async with outgoing(by_body(echoed), key=KEY) as (service, http):
        config = tool(
            service,
            "POST",
            headers=[{"name": "Authorization", "value": "Bearer {secrets.key}"}],
            query=[{"name": "k", "value": "{secrets.key}"}],
            body={"type": "form", "fields": [{"name": "f", "value": "{secrets.key}"}]},
        )
        path, headers, body = await DrivenHttp(config, http).completes()
    assert service.arrived[0].headers["authorization"] == f"Bearer {KEY}"
    assert service.arrived[0].body == b"f=sesame%2Fopen+%26you"
    assert (path, body) == ("/orders?k=[secret]", "f=[secret]")
    assert headers["authorization"] == "Bearer [secret]"


KEYED = {"headers": [{"name": "X-Key", "value": "{secrets.key}"}]}


async def test_a_secret_in_an_error_of_the_service_is_masked():
    async def handler(request: Arrived, writer: asyncio.StreamWriter) -> None:
        write(writer, 401, request.headers["x-key"].encode(), Content_Type="text/plain")

    refused, _ = await refusal(handler, secrets={"key": KEY}, **KEYED)
    assert refused == "The service answered with status 401:\n[secret]"


@pytest.mark.parametrize(
    ("config", "arguments", "words"),
    [
        (KEYED, None, "There is no secret 'key'."),
        (
            {"headers": [{"name": "X-A", "value": "{arguments.a}"}]},
            {"a": "x\r\nX-B: y"},
            "invalid characters",
        ),
    ],
)
async def test_a_request_that_cannot_be_built_is_an_error_and_not_sent(config, arguments, words):
    refused, arrived = await refusal(answer(), arguments=arguments, **config)
    assert words in refused
    assert not arrived


WHY = [{"key": "why", "message": "Why?", "requested_schema": REFUND}]


async def test_a_request_is_sent_once_for_all_rounds():
    """The response is recorded: a round after it does not send the request again."""
    async with outgoing(in_turn(b'{"n": 1}')) as (service, http):
        driven = DrivenHttp(tool(service, "POST", questions=WHY), http)
        assert await driven.asks() == ["why"]
        assert not service.arrived
        assert await driven.completes(why=accept(reason="late")) == {"n": 1}
    assert len(service.arrived) == 1


async def test_a_declined_input_request_prevents_the_http_request():
    async with outgoing(answer()) as (service, http):
        driven = DrivenHttp(tool(service, "POST", questions=WHY), http)
        await driven.asks()
        assert "declined" in await driven.refuses(why=DECLINE)
    assert not service.arrived


async def test_the_response_to_a_post_waits_for_a_free_worker_to_map_it():
    """The service may have acted, so what it said must not be lost."""
    full = 3

    async def search(tenant: str, expression: str, data: Any) -> Any:
        nonlocal full
        if full:
            full -= 1
            raise SandboxFullError(of_tenant=False)
        return data["number"]

    async with outgoing(by_body(lambda _: b'{"number": 7}')) as (service, http):
        config = tool(service, "POST", response={"select": "number"})
        assert await DrivenHttp(config, http, search=search).completes() == 7
        assert len(service.arrived) == 1


async def test_a_multipart_form_with_files_is_readable_by_a_parser():
    async with outgoing(answer(body=b"{}", **JSON)) as (service, http):
        photo = {"name": "photo", "content": "{arguments.photo}", "media_type": "image/png"}
        body = {
            "type": "multipart",
            "fields": [{"name": "title", "value": "{arguments.title}"}],
            "files": [
                {**photo, "file_name": "{arguments.called}"},
                {"name": "pages", "content": "{arguments.pages}"},
                {"name": "missing", "content": "{arguments.missing}"},
            ],
        }
        arguments = {
            "title": "Ünder",
            "photo": b64encode(PNG).decode(),
            "called": 'a";\r\nX-Evil: 1\r\n\r\n.png',
            "pages": [b64encode(b"one").decode(), b64encode(b"").decode()],
        }
        await DrivenHttp(tool(service, "POST", body=body), http, arguments).completes()
    (arrived,) = service.arrived
    head = f"Content-Type: {arrived.headers['content-type']}\r\n\r\n".encode()
    parts = list(BytesParser(policy=HTTP).parsebytes(head + arrived.body).iter_parts())
    assert [part.get_param("name", header="content-disposition") for part in parts] == [
        "title",
        "photo",
        "pages",
        "pages",
    ]
    assert [part.get_payload(decode=True) for part in parts] == ["Ünder".encode(), PNG, b"one", b""]
    assert parts[1].get_content_type() == "image/png"
    assert parts[1].get_filename() == "a%22;%0D%0AX-Evil: 1%0D%0A%0D%0A.png"
    assert "X-Evil" not in parts[1]
    assert parts[2].get_content_type() == "application/octet-stream"
    assert parts[2].get_filename() == "pages"


@pytest.mark.parametrize(
    ("file", "arguments", "words"),
    [
        ({}, {"f": "not Base64!"}, "arguments.f must be the content of a file in Base64"),
        ({}, {"f": [""] * 33}, "at most 32 files"),
        ({"media_type": "{arguments.t}"}, {"f": "", "t": "a/b\r\nX: 1"}, "content type of"),
        ({"file_name": "{arguments.t}"}, {"f": "", "t": "x" * 501}, "more than 500 characters"),
    ],
)
async def test_an_invalid_file_is_refused_and_the_request_not_sent(file, arguments, words):
    body = {"type": "multipart", "files": [{"name": "f", "content": "{arguments.f}", **file}]}
    refused, arrived = await refusal(answer(), "POST", arguments, body=body)
    assert words in refused
    assert not arrived


def lists(depth: int) -> bytes:
    return b"[" * depth + b'"canary"' + b"]" * depth


def objects(depth: int) -> bytes:
    return b'{"a":' * depth + b'"canary"' + b"}" * depth


DEEP = "The service's response is nested deeper than 100 levels of JSON"


@pytest.mark.parametrize("nested", [lists, objects])
@pytest.mark.parametrize("content", ["auto", "resource_link"])
@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 1000])
async def test_a_deeply_nested_response_is_refused_with_the_reason(depth, content, nested):
    for response in ({"content": content}, {"content": content, "select": "@"}):
        refused, _ = await refusal(answer(body=nested(depth), **JSON), response=response)
        assert refused == DEEP


async def test_a_response_too_deep_to_parse_is_an_error_that_does_not_quote_it():
    assert "canary" not in (await refusal(answer(body=lists(100_000), **JSON)))[0]
