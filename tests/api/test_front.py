"""The API as programs meet it, through the ASGI application: problems, limits and headers."""

import gc
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from pytest_django import Settings

from mcphost.api.front import ApiFront
from mcphost.api.problems import MEDIA_TYPE
from mcphost.api.resources import tenants
from mcphost.listings.exports import MEDIA_TYPES
from mcphost.observability.availability import Source, availability
from mcphost.serving import limits
from mcphost.serving.limits import CallerCounts
from mcphost.transport.django_requests import slots
from tests.cast import Cast
from tests.mcp import Exchange, Reply

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("stopped")]

PATH = "/api/v1/tenants/acme"
BROWSER = "text/html,application/xhtml+xml,*/*;q=0.8"


@pytest.fixture(autouse=True)
def _threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Begin without earlier requests; end the threads of Django's requests."""
    monkeypatch.setattr(limits, "_counted", CallerCounts())
    yield
    slots.cache_clear()
    gc.collect()


async def ask(
    path: str, token: str = "", body: bytes = b"", method: str = "GET", **headers: str
) -> Reply:
    sent = {"host": "localhost", **{name.replace("_", "-"): headers[name] for name in headers}}
    if token:
        sent["authorization"] = f"Bearer {token}"
    exchange = Exchange(path, sent, method)
    exchange.write(body)
    return await exchange.done()


def problem(reply: Reply, status: int) -> Any:
    assert (reply.status, reply.headers["content-type"]) == (status, MEDIA_TYPE), reply.raw
    return orjson.loads(reply.raw)


async def test_exported_files_are_sent_as_they_are(cast: Cast) -> None:
    for media_type in MEDIA_TYPES.values():
        reply = await ask(f"{PATH}/calls/export", cast.owner.api_token, accept=media_type)
        sent = reply.headers["content-type"], reply.status
        assert sent == (f"{media_type}; charset=utf-8", 200), reply.raw
        assert b"complete" in reply.raw
        assert "ratelimit" in reply.headers


async def test_programs_and_browsers_never_get_html(cast: Cast) -> None:
    for path in ("/api", "/api/", "/api/v1", PATH, f"{PATH}/tools", "/api/admin/", "/api/v1/\n"):
        for method in ("GET", "HEAD", "POST", "PUT", "OPTIONS", "TRACE", "BREW"):
            for accept in ("", BROWSER):
                reply = await ask(path, method=method, accept=accept)
                assert reply.headers["content-type"] == MEDIA_TYPE, (path, method)
                assert not reply.raw.startswith(b"<")
    assert problem(await ask("/api"), 404)["instance"] == "/api"


async def test_the_reference_is_a_page_beside_an_api_that_speaks_json(cast: Cast) -> None:
    reply = await ask("/api/docs/", accept=BROWSER)
    assert (reply.status, reply.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    problem(await ask("/api/docs/x", accept=BROWSER), 404)


async def test_what_the_server_refuses_before_the_views_is_a_problem(
    cast: Cast, settings: Settings
) -> None:
    settings.MCPHOST_FORM_LIMIT = 1000
    token = cast.owner.api_token
    body = b'{"title": "%s"}' % (b"x" * 1000)
    too_large = problem(await ask(PATH, token, body, "PATCH", if_match="*"), 413)
    assert too_large["type"] == "urn:mcphost:problem:too-large"
    problem(await ask(PATH, token, host="evil.example.com"), 400)


async def test_a_database_that_is_away_is_a_problem(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(availability, "probe", None)
    availability.lost(Source.CONNECTION, "a test")
    reply = await ask(PATH, cast.owner.api_token)
    availability.forget()
    assert problem(reply, 503)["type"] == "urn:mcphost:problem:unavailable"
    assert reply.headers["retry-after"] == "2"


async def test_a_fault_of_the_server_is_a_problem_without_its_text() -> None:
    async def page(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"Content-Type", b"text/html"), (b"Set-Cookie", b"a=b")]
        await send({"type": "http.response.start", "status": 500, "headers": headers})
        await send({"type": "http.response.body", "body": b"<h1>secret</h1>", "more_body": True})
        await send({"type": "http.response.body", "body": b"more"})

    events: list[dict[str, Any]] = []

    async def send(event: dict[str, Any]) -> None:
        events.append(event)

    await ApiFront(page)({"path": PATH, "headers": [], "client": None}, None, send)  # type: ignore[arg-type]
    start, body = events
    assert start["status"] == 500
    assert "set-cookie" not in {name.decode() for name, _ in start["headers"]}
    assert orjson.loads(body["body"])["detail"] == "The server failed. Its log says why."


async def test_a_view_that_fails_is_a_problem(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise ValueError("secret")

    monkeypatch.setattr(tenants, "snapshot", fail)
    reply = await ask(PATH, cast.owner.api_token)
    assert problem(reply, 500)["type"] == "urn:mcphost:problem:internal-error"
    assert b"secret" not in reply.raw


async def test_requests_are_limited_for_each_token_and_the_rest_for_its_address(
    cast: Cast, settings: Settings
) -> None:
    settings.MCPHOST_API_REQUESTS_PER_MINUTE = 3
    for remaining in (2, 1, 0):
        reply = await ask(PATH)
        assert reply.status == 401
        assert reply.headers["ratelimit-policy"] == '"requests";q=3;w=60'
        assert reply.headers["ratelimit"] == f'"requests";r={remaining};t=60'
    reply = await ask(PATH)
    assert problem(reply, 429)["type"] == "urn:mcphost:problem:too-many-requests"
    assert 0 < int(reply.headers["retry-after"]) <= 60
    assert reply.headers["ratelimit"] == f'"requests";r=0;t={reply.headers["retry-after"]}'


async def test_a_token_that_works_has_an_allowance_of_its_own(
    cast: Cast, settings: Settings
) -> None:
    settings.MCPHOST_API_REQUESTS_PER_MINUTE = 2
    owner, operator = cast.owner.api_token, cast.operator.api_token
    first = [(await ask(PATH, owner)).status for _ in range(4)]
    assert first == [200, 200, 200, 429]  # the first one was counted for the address
    assert (await ask(PATH, operator)).status == 200  # for the address, too
    assert (await ask(PATH)).status == 429
    assert (await ask(PATH, operator)).status == 200
