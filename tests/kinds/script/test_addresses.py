"""Texts of callers in addresses are encoded as data, however a script builds the address."""

from typing import Any
from urllib.parse import quote

import pytest

from mcphost.kinds.script.addresses import CallerTexts
from mcphost.sandbox.pool import Sandbox
from tests.kinds.rounds_with_client import accept, asking_call
from tests.kinds.script.script_calls import DrivenScript

API = "https://api.example.com"

WAYS = {
    "an f-string": "http.get(f'{API}/users/{user}/notes?a={user}')",
    "a sum": "http.get(API + '/users/' + user + '/notes?a=' + user)",
    "format": "http.get('{}/users/{}/notes?a={}'.format(API, user, user))",
    "percent": "http.get('%s/users/%s/notes?a=%s' % (API, user, user))",
    "join": "http.get('/users/'.join([API, user]) + '/notes?a=' + user)",
    "a variable": "path = f'users/{user}/notes'\n    http.get(url=f'{API}/{path}?a={user}')",
    "a function": "_fetch(f'/users/{user}/notes?a={user}')",
    "quote": "http.get(f'{API}/users/{quote(user)}/notes?a={quote(user)}')",
}
TEXTS = [
    "7/notes#x",
    "a b",
    "7?x=1&y",
    "../admin",
    "50%",
    "7%2Fnotes",
    "a\\b",
    "é+ü;x",
    "/",
    "a\nb",
    "%",
]


def source(body: str, parameter: str = "user: str") -> str:
    return (
        f"API = '{API}'\n\ndef _fetch(path):\n    return http.get(API + path)\n\n"
        f"def f({parameter}) -> None:\n    {body}\n"
    )


def driven(code: str, sandbox: Sandbox, **arguments: Any) -> DrivenScript:
    return DrivenScript(code, sandbox, asking_call(arguments))


def sent(script: DrivenScript) -> tuple[str, tuple[Any, ...]]:
    (request,) = script.http.requests
    return request.url, request.query


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("way", WAYS)
async def test_caller_text_in_an_address_is_one_segment_and_one_query_value(
    sandbox: Sandbox, way: str, text: str
):
    script = driven(source(WAYS[way]), sandbox, user=text)
    await script.completes()
    assert sent(script) == (f"{API}/users/{quote(text, safe='')}/notes", (("a", text),))


@pytest.mark.parametrize("value", [7, 1.5, "7", "a-b.c", "Ada", "urn:a:7", "a@b.example"])
async def test_caller_text_without_special_characters_is_sent_unchanged(
    sandbox: Sandbox, value: Any
):
    script = driven(source(WAYS["an f-string"], "user"), sandbox, user=value)
    await script.completes()
    assert sent(script) == (f"{API}/users/{value}/notes", (("a", str(value)),))


PLACES: dict[str, tuple[str, dict[str, Any]]] = {
    "a member": ('user["id"]', {"user": {"id": "7/x"}}),
    "an element": ("user[0][1]", {"user": [["a", "7/x"]]}),
    "a name": ("list(user)[0]", {"user": {"7/x": 1}}),
    "stripped": ("user.strip()", {"user": " 7/x\n"}),
    "another case": ("user.lower()", {"user": "7/X"}),
    "with blanks": ("user", {"user": " 7/x "}),
}


@pytest.mark.parametrize("place", PLACES)
async def test_caller_text_is_recognized_in_any_place_of_the_arguments(
    sandbox: Sandbox, place: str
):
    written, arguments = PLACES[place]
    script = driven(
        source(f"http.get(f'{{API}}/users/{{{written}}}')", "user"), sandbox, **arguments
    )
    await script.completes()
    assert sent(script)[0].replace("%20", "") == f"{API}/users/7%2Fx"


async def test_the_text_of_an_input_response_is_one_segment(sandbox: Sandbox):
    code = source(
        "name = elicit('name', 'Who?', {'name': str})['name']\n"
        "    elicit('sure', 'Sure?', {'ok': bool})\n    http.get(f'{API}/users/{name}')",
        "",
    )
    for lost in (False, True):
        script = driven(code, sandbox)
        await script.asks()
        await script.asks(name=accept(name="7/x"))
        if lost:
            script.lose_the_paused_script()
        await script.completes(sure=accept(ok=True))
        assert sent(script)[0] == f"{API}/users/7%2Fx"


REFUSED = {
    "evil.example": "http.get(f'https://{user}.example.com/x')",
    "evil.example/": "http.get('https://' + user + '.example.com/x')",
    "x@evil.example": "http.get(f'https://{user}/x')",
    "a.b": "http.get(f'https://api.{user}:443')",
    ".": "http.get(f'{API}/users/{user}/x')",
    "..": "http.get(f'{API}/users/{user}')",
}


@pytest.mark.parametrize("text", REFUSED)
async def test_caller_text_that_would_change_the_host_or_leave_the_path_is_refused(
    sandbox, text: str
):
    script = driven(source(REFUSED[text]), sandbox, user=text)
    assert "of the address" in await script.refuses()
    assert not script.http.requests


async def test_caller_text_may_be_one_label_of_a_host(sandbox: Sandbox):
    script = driven(source("http.get(f'https://{user}.example.com/x')"), sandbox, user="eu-1")
    await script.completes()
    assert sent(script)[0] == "https://eu-1.example.com/x"


async def test_caller_text_at_the_beginning_is_used_as_the_whole_address(sandbox: Sandbox):
    for body in ("http.get(user)", "http.get(user + '/y?b=2')", "http.get(f'{user}/y')"):
        script = driven(source(body), sandbox, user=f"{API}/a/b?c=d")
        await script.completes()
        assert sent(script)[0].startswith(f"{API}/a/b")


async def test_caller_text_that_the_address_begins_with_is_encoded_in_another_place(sandbox):
    script = driven(source("http.get(f'{API}/u/{user}/p?a={user}')"), sandbox, user=f"{API}/u/")
    await script.completes()
    assert sent(script) == (f"{API}/u/{quote(f'{API}/u/', safe='')}/p", (("a", f"{API}/u/"),))


async def test_text_of_the_script_or_of_a_response_is_not_encoded(sandbox: Sandbox):
    """Also if a caller sends the same text for something else."""
    body = "got = http.get(f'{API}/v1/users?x={user}').json()\n    http.get(f'{API}/{got[\"number\"]}/a/b')"
    script = driven(source(body, "user, other"), sandbox, user="v1/users", other="/a/")
    await script.completes()
    first, second = script.http.requests
    assert (first.url, first.query) == (f"{API}/v1/users", (("x", "v1/users"),))
    assert second.url == f"{API}/1/a/b"


def test_encoding_many_caller_texts_takes_bounded_time():
    texts = CallerTexts(
        "", [[f"{n}/" for n in range(50_000)], "a/" * 4000, ["a/" * n for n in range(500)]]
    )
    assert texts.encode(f"{API}/{'a/' * 3000}").count("%2F")
