"""Links of calls: pages that only their own user can confirm, callbacks of services, waits."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from mcphost.calls import links as calls
from mcphost.calls.links import Link
from mcphost.feed.loop import loop
from mcphost.protocol.headers import Headers
from mcphost.protocol.legacy.questions import question_params_for
from mcphost.protocol.revisions import REVISIONS, Era
from mcphost.runtime.call import Client, Delivery, Principal, PrincipalKind
from mcphost.runtime.ports import LinkRefusedError
from mcphost.sealing.tokens import Purpose
from mcphost.serving.context import Incoming
from mcphost.serving.database import in_database
from mcphost.serving.execution.links import CallLinks, call_back, confirm, confirmation, warm
from mcphost.tenants.selectors import TenantSnapshot
from mcphost.tenants.services import close_tenant, remove_member
from mcphost.vault import sealer
from tests.cast import ACTOR, Cast
from tests.conftest import Elsewhere
from tests.kinds.rounds import a_call
from tests.serving.defined_rounds import turn

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = 20.0


class Open:
    """A stream that is open or closed."""

    def __init__(self, *, closed: bool = False) -> None:
        self.closed = closed

    def send(self, message: bytes) -> None: ...


def links_of(
    tenant: TenantSnapshot,
    *,
    call: UUID | None = None,
    host: str = "mcp.example.com",
    kind: PrincipalKind = PrincipalKind.TOKEN,
    user: User | None = None,
    closed: bool = False,
) -> CallLinks:
    """The links of one round of a call that `user` makes."""
    token = "token-1" if kind is PrincipalKind.TOKEN else ""
    who = Principal(kind, tenant.id, token, user_id=user.pk if user else None)
    made = a_call()._replace(id=call or uuid4(), tenant=tenant.id, principal=who)
    headers = Headers([(b"host", host.encode())] if host else [])
    incoming = _incoming()._replace(tenant=tenant, principal=who, headers=headers)
    return CallLinks(incoming, made, Open(closed=closed))


def _incoming() -> Incoming:
    async def nothing() -> Any: ...

    return turn(nothing).incoming


def members(cast: Cast, *, call: UUID | None = None, **said: Any) -> CallLinks:
    """The links of a call of acme's member."""
    return links_of(cast.acme, call=call, user=cast.member.user, **said)


async def page_of(made: CallLinks, key: str = "payment") -> str:
    await warm(made._call.tenant)
    return made.page(key)


async def callback_of(made: CallLinks, key: str = "payment") -> str:
    await warm(made._call.tenant)
    return made.callback(key)


async def confirmed(
    url: str, user: User, slug: str = "acme", later: timedelta = timedelta()
) -> bool:
    token, now = url.rpartition("/")[2], timezone.now() + later
    return await in_database(confirm, slug, token, user.pk, user.get_username(), now)


async def called_back(url: str, slug: str = "acme") -> bool:
    token = url.rpartition("/")[2]
    return await in_database(call_back, slug, token, "192.0.2.1", timezone.now())


async def test_a_link_uses_the_host_of_the_caller_or_the_public_address(
    cast: Cast, settings: Any
) -> None:
    url = await page_of(members(cast))
    assert url.startswith("http://mcp.example.com/t/acme/done/")
    assert len(url) < 500
    named = members(cast)
    named._call = named._call._replace(client=Client("名" * 500), target="名" * 500)
    assert len(await page_of(named)) < 1200
    settings.MCPHOST_HTTPS = True
    assert (await page_of(members(cast))).startswith("https://mcp.example.com/")
    settings.MCPHOST_PUBLIC_URL = "https://tools.example.com/mcp"
    url = await page_of(members(cast))
    assert url.startswith("https://tools.example.com/mcp/t/acme/done/")


async def test_with_any_host_allowed_a_link_requires_the_public_address(
    cast: Cast, settings: Any
) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    with pytest.raises(LinkRefusedError, match="MCPHOST_PUBLIC_URL"):
        await page_of(members(cast))
    settings.ALLOWED_HOSTS = ["mcp.example.com"]
    with pytest.raises(LinkRefusedError, match="MCPHOST_PUBLIC_URL"):
        await page_of(members(cast, host=""))


async def test_anonymous_callers_get_no_links_and_cannot_wait_for_any(cast: Cast) -> None:
    anonymous = links_of(cast.commons, kind=PrincipalKind.ANONYMOUS)
    with pytest.raises(LinkRefusedError, match="no user account"):
        await page_of(anonymous)
    with pytest.raises(LinkRefusedError, match="Anonymous"):
        await callback_of(anonymous)
    with pytest.raises(LinkRefusedError, match="Anonymous"):
        await anonymous.wait("payment", 1, ())


async def test_a_caller_without_a_user_account_gets_callbacks_and_no_pages(cast: Cast) -> None:
    machine = links_of(cast.acme)
    with pytest.raises(LinkRefusedError, match="no user account"):
        await page_of(machine)
    assert "/t/acme/callback/" in await callback_of(machine)


async def test_a_call_waits_until_its_link_is_confirmed_or_called_back(cast: Cast) -> None:
    mine = members(cast)
    url = await page_of(mine)
    waiting = asyncio.create_task(mine.wait("payment", SECONDS, ()))
    for _ in range(2):  # opened again, it is good again
        assert await confirmed(url, cast.member.user)
        assert await waiting is True
    machine = links_of(cast.acme)
    url = await callback_of(machine)
    waiting = asyncio.create_task(machine.wait("payment", SECONDS, [url]))
    for _ in range(2):
        assert await called_back(url), "without a credential"
        assert await waiting is True


async def test_a_link_confirmed_on_another_process_ends_the_wait(
    cast: Cast, elsewhere: Elsewhere, looked: asyncio.Event
) -> None:
    mine = members(cast)
    url = await page_of(mine)
    waiting = asyncio.create_task(mine.wait("payment", SECONDS, ()))
    await asyncio.wait_for(looked.wait(), SECONDS)

    def there() -> None:
        with elsewhere():
            token, member = url.rpartition("/")[2], cast.member.user
            assert confirm("acme", token, member.pk, "member", timezone.now())

    await in_database(there)
    assert not waiting.done()
    await in_database(loop.poll)
    assert await waiting is True


@pytest.fixture
async def looked(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set once the database was asked whether a link is open."""
    loop, event, is_open = asyncio.get_running_loop(), asyncio.Event(), calls.is_open

    def look(link: Link) -> bool:
        found = is_open(link)
        loop.call_soon_threadsafe(event.set)
        return found

    monkeypatch.setattr(calls, "is_open", look)
    return event


async def test_a_wait_ends_only_with_the_link_of_its_call_and_key_even_if_confirmed_before(
    cast: Cast,
) -> None:
    call = uuid4()
    await confirmed(await page_of(members(cast, call=call), "other"), cast.member.user)
    await confirmed(await page_of(members(cast)), cast.member.user)
    assert await members(cast, call=call).wait("payment", 0.01, ()) is False
    await confirmed(await page_of(members(cast, call=call)), cast.member.user)
    assert await members(cast, call=call).wait("payment", SECONDS, ())


async def test_a_wait_for_a_link_is_refused_after_a_disconnect(cast: Cast) -> None:
    with pytest.raises(LinkRefusedError, match="disconnected"):
        await members(cast, closed=True).wait("payment", 1, ())


async def test_a_page_accepts_no_callback_and_a_callback_no_confirmation(cast: Cast) -> None:
    call = uuid4()
    mine = members(cast, call=call)
    assert not await called_back(await page_of(mine))
    assert not await confirmed(await callback_of(mine), cast.member.user)
    assert not await in_database(calls.is_open, Link(cast.acme.id, call, "payment"))


async def test_only_the_asked_user_can_confirm_a_link_or_see_its_request(cast: Cast) -> None:
    call = uuid4()
    token = (await page_of(members(cast, call=call))).rpartition("/")[2]
    now = timezone.now()
    for other in (cast.owner, cast.operator, cast.auditor, cast.staff, cast.stranger):
        assert not await in_database(confirm, "acme", token, other.user.pk, "x", now)
        assert await in_database(confirmation, "acme", token, other.user.pk, now) is None
    assert not await in_database(calls.is_open, Link(cast.acme.id, call, "payment"))
    asked = await in_database(confirmation, "acme", token, cast.member.user.pk, now)
    assert asked is not None
    assert (asked.tenant.slug, asked.key, asked.confirmed) == ("acme", "payment", False)
    assert (asked.client, asked.target) == (a_call().client.name, a_call().target)


async def test_a_former_member_or_inactive_user_cannot_confirm_a_link_or_see_its_request(
    cast: Cast,
) -> None:
    url, user = await page_of(members(cast)), cast.member.user

    async def seen() -> bool:
        token, now = url.rpartition("/")[2], timezone.now()
        return await in_database(confirmation, "acme", token, user.pk, now) is not None

    accounts = User.objects.filter(pk=user.pk)
    await in_database(lambda: accounts.update(is_active=False))
    assert (await seen(), await confirmed(url, user)) == (False, False)
    await in_database(lambda: accounts.update(is_active=True))
    assert await seen()
    await in_database(remove_member, cast.acme.id, user, actor=ACTOR)
    assert (await seen(), await confirmed(url, user)) == (False, False)


async def test_a_link_of_a_closed_tenant_accepts_no_callback(cast: Cast) -> None:
    call = uuid4()
    url = await callback_of(members(cast, call=call))
    assert not await called_back(url, slug="globex")
    await in_database(close_tenant, cast.acme.id, actor=ACTOR)
    assert not await called_back(url)
    assert not await in_database(calls.is_open, Link(cast.acme.id, call, "payment"))


class Said(Open):
    """A stream that keeps the messages sent."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[Any] = []

    def send(self, message: bytes) -> None:
        self.messages.append(orjson.loads(message))


@pytest.mark.requirement("elicitation.complete")
@pytest.mark.parametrize(
    ("revision", "era", "delivery", "told"),
    [
        ("2025-11-25", Era.LEGACY, Delivery.LEGACY, True),
        ("2025-06-18", Era.LEGACY, Delivery.LEGACY, False),
        ("2026-07-28", Era.MODERN, Delivery.MODERN, False),
    ],
)
async def test_a_client_with_elicitation_ids_is_notified_of_a_completed_one(
    cast: Cast, revision: str, era: Era, delivery: Delivery, *, told: bool
) -> None:
    mine, stream = members(cast), Said()
    mine._stream = stream
    mine._call = mine._call._replace(revision=revision, era=era, delivery=delivery)
    url = await page_of(mine)
    assert not await mine.wait("payment", 0.01, [url])
    assert stream.messages == [], "nothing is called complete that is not"
    await confirmed(url, cast.member.user)
    assert await mine.wait("payment", SECONDS, [url])
    params = {"mode": "url", "message": "Sign.", "url": url}
    question = question_params_for(REVISIONS["2025-11-25"], "elicitation/create", params)
    message = {
        "jsonrpc": "2.0",
        "method": "notifications/elicitation/complete",
        "params": {"elicitationId": question["elicitationId"]},
    }
    assert stream.messages == ([message] if told else [])


def _token(url: str) -> str:
    return url.rpartition("/")[2]


async def _sealed(cast: Cast, url: str, purpose: Purpose, payload: str) -> str:
    """A link of the same tenant with other content."""
    token = await in_database(sealer.seal, purpose, cast.acme.id, payload.encode())
    return f"{_token(url).partition('.')[0]}.{token}"


async def test_a_modified_link_confirms_nothing(cast: Cast) -> None:
    call, member = uuid4(), cast.member.user
    url = await page_of(members(cast, call=call))
    rest = _token(url).partition(".")[2]
    other = _token(await callback_of(links_of(cast.globex))).partition(".")[0]
    fields = '"00000000000000000000000000000001","payment",9999999999'
    for spoilt in (
        url[:-3] + ("AAA" if url[-3:] != "AAA" else "BBB"),
        url[:-1],
        url.partition(".mcps1")[0],
        f"{other}.{rest}",
        f"{'A' * 22}.{rest}",
        await _sealed(cast, url, Purpose.CURSOR, f'["done",{fields},{member.pk},"",""]'),
        await _sealed(cast, url, Purpose.LINK, f"[{fields}]"),  # of the older form
    ):
        assert not await confirmed(spoilt, member), spoilt
    for slug in ("globex", "nobody"):
        assert not await confirmed(url, member, slug=slug)
    assert not await confirmed(url, member, later=timedelta(days=2))
    await in_database(close_tenant, cast.acme.id, actor=ACTOR)
    assert not await confirmed(url, member)
    assert not await in_database(calls.is_open, Link(cast.acme.id, call, "payment"))
