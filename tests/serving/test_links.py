"""Links of calls: made for callers who are known, opened by whoever has them, waited for in time."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import OperationalError
from django.utils import timezone

from mcphost.calls import links as calls
from mcphost.calls.links import Link
from mcphost.feed.loop import loop
from mcphost.protocol.headers import Headers
from mcphost.runtime.call import Principal, PrincipalKind
from mcphost.runtime.ports import LinkRefused
from mcphost.sealing.tokens import Purpose
from mcphost.serving import links
from mcphost.serving.hop import in_database
from mcphost.serving.incoming import Incoming
from mcphost.serving.links import CallLinks, finish, warm
from mcphost.serving.waiting import waiters
from mcphost.tenants.selectors import TenantSnapshot
from mcphost.tenants.services import close_tenant
from mcphost.vault import sealer
from tests.cast import ACTOR, Cast
from tests.conftest import Elsewhere
from tests.kinds.rounds import a_call
from tests.serving.turns import turn

pytestmark = pytest.mark.django_db(transaction=True)

SECONDS = 20.0


class Open:
    """A stream whose reader is there, or not."""

    def __init__(self, *, closed: bool = False) -> None:
        self.closed = closed

    def send(self, message: bytes) -> None: ...


def links_of(
    tenant: TenantSnapshot,
    *,
    call: UUID | None = None,
    host: str = "mcp.example.com",
    kind: PrincipalKind = PrincipalKind.TOKEN,
    closed: bool = False,
) -> CallLinks:
    """The links of one round of a call."""
    who = Principal(kind, tenant.id, "token-1" if kind is PrincipalKind.TOKEN else "")
    made = a_call()._replace(id=call or uuid4(), tenant=tenant.id, principal=who)
    headers = Headers([(b"host", host.encode())] if host else [])
    incoming = _incoming()._replace(tenant=tenant, principal=who, headers=headers)
    return CallLinks(incoming, made, Open(closed=closed))


def _incoming() -> Incoming:
    async def nothing() -> Any: ...

    return turn(nothing).incoming


async def url_of(made: CallLinks, key: str = "payment") -> str:
    await warm(made._call.tenant)
    return made.url(key)


async def opened(url: str, slug: str = "acme", later: timedelta = timedelta()) -> bool:
    return await in_database(finish, slug, url.rpartition("/")[2], timezone.now() + later)


async def test_a_link_leads_to_the_host_that_the_caller_used(cast: Cast) -> None:
    url = await url_of(links_of(cast.acme))
    assert url.startswith("http://mcp.example.com/t/acme/done/")
    assert len(url) < 400


async def test_a_link_leads_to_the_public_address_where_there_is_one(
    cast: Cast, settings: Any
) -> None:
    settings.MCPHOST_PUBLIC_URL = "https://tools.example.com/mcp"
    url = await url_of(links_of(cast.acme))
    assert url.startswith("https://tools.example.com/mcp/t/acme/done/")


async def test_over_https_a_link_is_one_too(cast: Cast, settings: Any) -> None:
    settings.MCPHOST_HTTPS = True
    assert (await url_of(links_of(cast.acme))).startswith("https://mcp.example.com/")


async def test_where_any_host_may_be_named_none_is_believed(cast: Cast, settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    with pytest.raises(LinkRefused, match="MCPHOST_PUBLIC_URL"):
        await url_of(links_of(cast.acme))
    settings.ALLOWED_HOSTS = ["mcp.example.com"]
    with pytest.raises(LinkRefused, match="MCPHOST_PUBLIC_URL"):
        await url_of(links_of(cast.acme, host=""))


async def test_anonymous_callers_get_no_links_and_wait_for_none(cast: Cast) -> None:
    anonymous = links_of(cast.commons, kind=PrincipalKind.ANONYMOUS)
    with pytest.raises(LinkRefused, match="Anonymous"):
        await url_of(anonymous)
    with pytest.raises(LinkRefused, match="Anonymous"):
        await anonymous.wait("payment", 1)


@pytest.mark.parametrize("key", ["", "a" * 65, "a b", "ä"])
async def test_a_key_of_a_link_is_like_that_of_a_question(cast: Cast, key: str) -> None:
    with pytest.raises(LinkRefused, match="1 to 64"):
        await url_of(links_of(cast.acme), key)


async def test_without_keys_at_hand_there_is_no_link(cast: Cast) -> None:
    with pytest.raises(LinkRefused, match="at the moment"):
        links_of(cast.acme).url("payment")


async def test_a_call_waits_until_its_link_is_opened(cast: Cast) -> None:
    mine = links_of(cast.acme)
    url = await url_of(mine)
    waiting = asyncio.create_task(mine.wait("payment", SECONDS))
    assert await opened(url)
    assert await waiting is True


async def test_another_process_may_be_the_one_that_opens_it(
    cast: Cast, elsewhere: Elsewhere, looked: asyncio.Event
) -> None:
    mine = links_of(cast.acme)
    url = await url_of(mine)
    waiting = asyncio.create_task(mine.wait("payment", SECONDS))
    await asyncio.wait_for(looked.wait(), SECONDS)

    def there() -> None:
        with elsewhere():
            assert finish("acme", url.rpartition("/")[2], timezone.now())

    await in_database(there)
    assert not waiting.done()
    await in_database(loop.poll)
    assert await waiting is True


@pytest.fixture
async def looked(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Set once somebody has looked whether a link is open."""
    loop, event, is_open = asyncio.get_running_loop(), asyncio.Event(), calls.is_open

    def look(link: Link) -> bool:
        found = is_open(link)
        loop.call_soon_threadsafe(event.set)
        return found

    monkeypatch.setattr(calls, "is_open", look)
    return event


async def test_what_was_done_before_is_not_waited_for(cast: Cast) -> None:
    call = uuid4()
    await opened(await url_of(links_of(cast.acme, call=call)))
    assert await links_of(cast.acme, call=call).wait("payment", SECONDS)


async def test_who_waits_in_vain_is_told_so_in_time(cast: Cast) -> None:
    assert await links_of(cast.acme).wait("payment", 0.01) is False


async def test_the_link_of_another_call_or_key_ends_no_waiting(cast: Cast) -> None:
    call = uuid4()
    await opened(await url_of(links_of(cast.acme, call=call), "other"))
    await opened(await url_of(links_of(cast.acme)))
    assert await links_of(cast.acme, call=call).wait("payment", 0.01) is False


async def test_where_nobody_is_there_any_more_nothing_is_waited_for(cast: Cast) -> None:
    with pytest.raises(LinkRefused, match="Nobody is there"):
        await links_of(cast.acme, closed=True).wait("payment", 1)


async def test_a_database_that_is_away_ends_the_waiting_in_words(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(_: object) -> bool:
        raise OperationalError("gone")

    monkeypatch.setattr(calls, "is_open", away)
    with pytest.raises(LinkRefused, match="cannot be read"):
        await links_of(cast.acme).wait("payment", SECONDS)


async def test_nobody_is_left_waiting_when_a_call_is_cancelled(
    cast: Cast, looked: asyncio.Event
) -> None:
    mine = links_of(cast.acme)
    waiting = asyncio.create_task(mine.wait("payment", SECONDS))
    await asyncio.wait_for(looked.wait(), SECONDS)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert waiters._waiting == {}


async def test_a_link_that_is_opened_again_is_good_again(cast: Cast) -> None:
    url = await url_of(links_of(cast.acme))
    assert await opened(url)
    assert await opened(url)


Spoil = Callable[[Cast, str], Awaitable[bool]]


async def _too_old(_: Cast, url: str) -> bool:
    return await opened(url, later=timedelta(days=2))


async def _of_another_tenant(_: Cast, url: str) -> bool:
    return await opened(url, slug="globex")


async def _of_nobody(_: Cast, url: str) -> bool:
    return await opened(url, slug="nobody")


async def _of_a_closed_tenant(cast: Cast, url: str) -> bool:
    await in_database(close_tenant, cast.acme.id, actor=ACTOR)
    return await opened(url)


async def _changed(_: Cast, url: str) -> bool:
    return await opened(url[:-3] + ("AAA" if url[-3:] != "AAA" else "BBB"))


async def _cut(_: Cast, url: str) -> bool:
    return await opened(url[:-1])


async def _without_a_token(_: Cast, url: str) -> bool:
    return await opened(url.partition(".mcps1")[0])


async def _under_another_tenants_id(cast: Cast, url: str) -> bool:
    other = (await url_of(links_of(cast.globex))).rpartition("/")[2].partition(".")[0]
    return await opened(f"{other}.{url.rpartition('/')[2].partition('.')[2]}")


async def _under_an_unknown_id(_: Cast, url: str) -> bool:
    return await opened(f"{'A' * 22}.{url.rpartition('/')[2].partition('.')[2]}")


async def _for_another_purpose(cast: Cast, url: str) -> bool:
    tenant = url.rpartition("/")[2].partition(".")[0]
    payload = b'["00000000000000000000000000000001","payment",9999999999]'
    token = await in_database(sealer.seal, Purpose.CURSOR, cast.acme.id, payload)
    return await opened(f"{tenant}.{token}")


@pytest.mark.parametrize(
    "spoil",
    [
        _too_old,
        _of_another_tenant,
        _of_nobody,
        _of_a_closed_tenant,
        _changed,
        _cut,
        _without_a_token,
        _under_another_tenants_id,
        _under_an_unknown_id,
        _for_another_purpose,
    ],
)
async def test_a_link_that_is_not_exactly_ours_opens_nothing(cast: Cast, spoil: Spoil) -> None:
    call = uuid4()
    url = await url_of(links_of(cast.acme, call=call))
    assert not await spoil(cast, url)
    assert not await in_database(calls.is_open, Link(cast.acme.id, call, "payment"))


def test_links_stand_for_as_long_as_keys_open(settings: Any) -> None:
    settings.MCPHOST_MAX_ANSWER_SECONDS = 7.0
    assert links._life() == 7.0
