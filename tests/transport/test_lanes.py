"""The head of a request is checked once, and the result is used only while it is valid."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import orjson
import pytest
from django.utils import timezone
from pytest_django import Settings

from mcphost.identity.services import TokenRequest, issue
from mcphost.protocol.headers import Headers
from mcphost.runtime.ports import SystemClock
from mcphost.serving.database import in_database
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.services import close_tenant, update_tenant
from mcphost.transport import lanes
from tests.cast import ACTOR, Cast
from tests.mcp import Exchange, call, headers_for, request, send

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = "https://app.example.com"
OF_ONE_REQUEST = frozenset(
    {
        "content-length",
        "mcp-protocol-version",
        "mcp-session-id",
        "mcp-method",
        "mcp-name",
        "traceparent",
    }
)
"""Headers that are read for each request, also with a lane."""


@pytest.fixture(autouse=True)
def _no_lanes() -> None:
    lanes._lanes.clear()


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names of the headers that were read."""
    seen: set[str] = set()

    def noting(real: Callable[..., Any]) -> Callable[..., Any]:
        def read(headers: Headers, wanted: str | Mapping[bytes, object]) -> Any:
            names = [wanted] if isinstance(wanted, str) else [name.decode() for name in wanted]
            seen.update(names)
            return real(headers, wanted)

        return read

    for name in ("get", "count", "equal"):
        monkeypatch.setattr(Headers, name, noting(getattr(Headers, name)))
    return seen


async def test_the_lane_key_contains_every_header_that_is_checked(
    served: Cast, read: set[str]
) -> None:
    deciding = {name.decode() for name in lanes.DECIDING}
    token = served.owner.mcp_token
    assert (await call("acme", "echo", {"text": "a"}, token)).status == 200
    assert deciding <= read
    assert read - deciding <= OF_ONE_REQUEST
    read.clear()
    assert (await call("acme", "echo", {"text": "a"}, token)).status == 200
    assert read <= OF_ONE_REQUEST, "the second request finds the lane of the first"
    assert len(lanes._lanes) == 1


def _with_more(token: str, *more: tuple[bytes, bytes]) -> Exchange:
    """A request with more header lines, of which some may come twice."""
    exchange = Exchange("/t/acme/mcp", headers_for(request("tools/list"), token))
    pairs: list[tuple[bytes, bytes]] = exchange._scope["headers"]  # type: ignore[assignment]
    pairs += more
    return exchange


async def test_a_request_with_other_headers_does_not_reuse_a_lane(served: Cast) -> None:
    token = served.owner.mcp_token
    assert (await send("acme", request("tools/list"), token)).status == 200
    for name, value, status in (
        ("authorization", "Bearer another", 401),
        ("host", "elsewhere.example", 403),
        ("accept", "text/html", 406),
        ("content-type", "text/plain", 415),
        ("origin", "https://elsewhere.example", 403),
        ("content-length", "99999999999", 413),
    ):
        reply = await send("acme", request("tools/list"), token, {name: value})
        assert reply.status == status, name
    assert (await send("globex", request("tools/list"), token)).status == 401
    for twice in ((b"authorization", f"Bearer {token}".encode()), (b"host", b"localhost")):
        exchange = _with_more(token, twice)
        exchange.write(orjson.dumps(request("tools/list")))
        assert (await exchange.done()).status in {401, 403}, twice
    length = (b"content-length", b"99999999")
    assert (await _with_more(token, length, (b"x-a", b"1"), (b"x-a", b"2")).done()).status == 413


def _without_origins(cast: Cast, settings: Settings) -> None:
    update_tenant(cast.acme.id, TenantFields(title="Acme"), actor=ACTOR)


def _closed(cast: Cast, settings: Settings) -> None:
    close_tenant(cast.acme.id, actor=ACTOR)


def _not_public(cast: Cast, settings: Settings) -> None:
    update_tenant(cast.commons.id, TenantFields(title="Commons", public=False), actor=ACTOR)


def _other_hosts(cast: Cast, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["elsewhere.example"]


@pytest.mark.parametrize(
    ("change", "status"),
    [(_without_origins, 403), (_closed, 401), (_not_public, 401), (_other_hosts, 403)],
)
async def test_a_lane_ends_when_the_rights_or_settings_behind_it_change(
    served: Cast, settings: Settings, change: Callable[[Cast, Settings], None], status: int
) -> None:
    allowing = TenantFields(title="Acme", allowed_origins=(PAGE,))
    await in_database(update_tenant, served.acme.id, allowing, actor=ACTOR)
    slug, token = ("commons", None) if change is _not_public else ("acme", served.owner.mcp_token)
    headers = {"origin": PAGE} if change is _without_origins else {}
    assert (await send(slug, request("tools/list"), token, headers)).status == 200
    await in_database(change, served, settings)
    assert (await send(slug, request("tools/list"), token, headers)).status == status


async def test_a_lane_ends_when_its_token_expires(
    served: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = TokenRequest("short", ("mcp:list",), expires_at=timezone.now() + timedelta(hours=1))
    issued = await in_database(issue, served.acme.id, served.owner.user, wanted, actor=ACTOR)
    assert (await send("acme", request("tools/list"), issued.plaintext)).status == 200
    later = timezone.now() + timedelta(hours=2)
    monkeypatch.setattr(SystemClock, "now", lambda self: later)
    assert (await send("acme", request("tools/list"), issued.plaintext)).status == 401


async def test_lanes_store_no_credential_long_header_or_repeated_header(
    served: Cast,
) -> None:
    token = served.owner.mcp_token
    assert (await send("acme", request("tools/list"), token)).status == 200
    assert token not in repr(list(lanes._lanes))
    lanes._lanes.clear()
    long = {"accept": f"*/*;x={'a' * 257}"}
    assert (await send("acme", request("tools/list"), token, long)).status == 200
    for value in (b"", b"*/*"):
        exchange = _with_more(token, *[(b"accept", value)] * 500)
        exchange.write(orjson.dumps(request("tools/list")))
        assert (await exchange.done()).status == 200
    assert not lanes._lanes


async def test_the_origin_is_checked_again_after_a_slow_body(served: Cast) -> None:
    allowing = TenantFields(title="Acme", allowed_origins=(PAGE,))
    await in_database(update_tenant, served.acme.id, allowing, actor=ACTOR)
    body = request("tools/list")
    exchange = Exchange(
        "/t/acme/mcp", {**headers_for(body, served.owner.mcp_token), "origin": PAGE}
    )
    exchange.write(b" ", more=True)
    await exchange.taken()
    await in_database(update_tenant, served.acme.id, TenantFields(title="Acme"), actor=ACTOR)
    exchange.write(orjson.dumps(body))
    assert (await exchange.done()).status == 403
