"""Codes, verifiers and tokens of the whole way are in no log, row, span or refusal."""

import gc
import logging
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import orjson
import pytest
from django.test import Client

from mcphost.identity.models import OAuthClient
from mcphost.observability import logs
from mcphost.serving.database import in_database
from mcphost.transport.django_requests import slots
from tests.cast import Cast
from tests.mcp import Exchange, Reply, request, send
from tests.oauth import CHALLENGE, REDIRECT, make_client
from tests.observability.spans import Seen, seen
from tests.stored_bytes import stored_bytes

__all__ = ["seen"]

pytestmark = pytest.mark.django_db(transaction=True)

VERIFIER = "a-verifier-of-at-least-forty-three-characters"
WRONG_VERIFIER = "canary-verifier-that-does-not-belong-to-the-code"
UNKNOWN = "canary-unknown-code-or-refresh-token"


class Lines(logging.Handler):
    """What is logged, as the product formats it and in plain."""

    def __init__(self) -> None:
        super().__init__()
        self._formatters = logs.formatter("json"), logging.Formatter()
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text += "".join(each.format(record) + "\n" for each in self._formatters)


@pytest.fixture
def lines() -> Iterator[Lines]:
    """Every line of every logger, DEBUG too."""
    handler, root = Lines(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler
    root.setLevel(level)
    root.removeHandler(handler)
    slots.cache_clear()  # ends the threads of Django's requests
    gc.collect()


class Way:
    """A browser and a client on the way from the consent page to calls."""

    def __init__(self, cookies: str) -> None:
        self._cookies = cookies
        self.refusals = b""

    async def page(self, path: str, query: str, **form: str) -> Reply:
        headers = {
            "host": "localhost",
            "accept": "text/html",
            "cookie": self._cookies,
        }
        if form:
            headers["content-type"] = "application/x-www-form-urlencoded"
        exchange = Exchange(path, headers, "POST" if form else "GET", query)
        exchange.write(urlencode(form).encode())
        return await exchange.done()

    async def post(self, path: str, *, query: str = "", **form: str) -> dict[str, Any]:
        headers = {"host": "localhost", "content-type": "application/x-www-form-urlencoded"}
        exchange = Exchange(path, headers, "POST", query)
        exchange.write(urlencode({"client_id": "dcr-laptop", **form}).encode())
        reply = await exchange.done()
        if reply.status != 200:
            self.refusals += reply.raw
        answer: dict[str, Any] = orjson.loads(reply.raw) if reply.raw else {}
        return answer

    async def code(self) -> str:
        query = urlencode(
            {
                "response_type": "code",
                "client_id": "dcr-laptop",
                "redirect_uri": REDIRECT,
                "code_challenge": CHALLENGE,
                "code_challenge_method": "S256",
                "resource": "http://localhost/t/acme/mcp",
            }
        )
        page = (await self.page("/authorize", query)).raw.decode()
        form = dict(re.findall(r'name="(csrfmiddlewaretoken|tenant)" value="([^"]+)"', page))
        reply = await self.page("/authorize", query, **form, _allow="1")
        (code,) = parse_qs(urlsplit(reply.headers["Location"]).query)["code"]
        return code


async def test_secrets_of_the_way_appear_nowhere(
    served: Cast,
    seen: Seen,
    lines: Lines,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def sign_in() -> str:
        make_client()
        client = Client()
        client.force_login(served.member.user)
        client.get("/admin/login/")
        return "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())

    way = Way(await in_database(sign_in))
    code, other = await way.code(), await way.code()
    redemption = {"grant_type": "authorization_code", "redirect_uri": REDIRECT}
    await way.post("/token", **redemption, code=code, code_verifier=WRONG_VERIFIER)
    await way.post("/token", **redemption, code=UNKNOWN, code_verifier=VERIFIER)
    await way.post("/token", **redemption, code=code, code_verifier="canary-short")
    await way.post("/token", query=f"code={code}", **redemption, code_verifier=VERIFIER)
    first = await way.post("/token", **redemption, code=code, code_verifier=VERIFIER)
    second = await way.post(
        "/token", grant_type="refresh_token", refresh_token=first["refresh_token"]
    )
    again = await way.post(
        "/token", grant_type="refresh_token", refresh_token=first["refresh_token"]
    )
    assert {**again, "expires_in": 0} == {**second, "expires_in": 0}
    await way.post("/token", grant_type="refresh_token", refresh_token=UNKNOWN)
    for token in (second["access_token"], second["access_token"][:-1] + "?"):
        await send("acme", request("tools/list"), token)
    with monkeypatch.context() as failing:
        failing.setattr("mcphost.identity.oauth.grants._store_access_token", _fail)
        failed = await way.post("/token", **redemption, code=other, code_verifier=VERIFIER)
        assert failed["error"] == "server_error"
    caplog.clear()  # the traceback keeps a thread
    await way.post("/token", **redemption, code=code, code_verifier=VERIFIER)  # ends the connection
    third = await way.post("/token", **redemption, code=other, code_verifier=VERIFIER)
    await way.post("/revoke", token=third["refresh_token"])
    secrets = {code, other, VERIFIER, WRONG_VERIFIER, UNKNOWN, "canary-short"}
    secrets |= {
        answer[name]
        for answer in (first, second, third)
        for name in ("access_token", "refresh_token")
    }
    spans = "".join(str(span.to_json()) for span in seen.all())
    rows = await in_database(stored_bytes)
    assert "RuntimeError" in lines.text
    assert spans
    assert way.refusals.count(b"error_description") == 7
    assert await in_database(OAuthClient.objects.count) == 1
    places = {
        "log": lines.text.encode(),
        "spans": spans.encode(),
        "rows": rows,
        "refusals": way.refusals,
    }
    assert [
        (place, secret)
        for place, text in places.items()
        for secret in secrets
        if secret.encode() in text
    ] == []


def _fail(*_: object) -> None:
    raise RuntimeError("a test")
