"""Links at which somebody else says that something is done: made, waited for, opened.

A link is `/t/<tenant>/done/<link>`, where the last part is the tenant's id, a dot, and a sealed
token of call, key and expiry. So whether a link is good is known without looking for the tenant that
its path names, and bad ones tell nothing of tenants.
"""

import asyncio
import logging
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from uuid import UUID

import orjson
from django.db import Error
from django.utils import timezone

from mcphost.calls import links
from mcphost.calls.links import Link
from mcphost.runtime.call import Call, PrincipalKind
from mcphost.runtime.ports import LinkRefused
from mcphost.sealing.tokens import Purpose, SealError
from mcphost.serving.hop import in_database
from mcphost.serving.incoming import Incoming
from mcphost.serving.options import options
from mcphost.serving.streams import Stream
from mcphost.serving.waiting import waiters
from mcphost.tenants import selectors as tenants
from mcphost.vault import sealer
from mcphost.vault.errors import VaultError

_KEY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_TENANT = re.compile(r"[A-Za-z0-9_-]{22}")

log = logging.getLogger(__name__)


class CallLinks:
    """Fills `runtime.ports.Links` for one round of a call."""

    __slots__ = ("_call", "_incoming", "_stream")

    def __init__(self, incoming: Incoming, call: Call, stream: Stream) -> None:
        self._incoming = incoming
        self._call = call
        self._stream = stream

    def url(self, key: str) -> str:
        link = self._link(key)
        base = _base(self._incoming)
        sealed = _seal(link, timezone.now() + timedelta(seconds=_life()))
        return f"{base}/t/{self._incoming.tenant.slug}/done/{sealed}"

    async def wait(self, key: str, seconds: float) -> bool:
        link = self._link(key)
        if self._stream.closed:
            raise LinkRefused("Nobody is there any more for whom to wait.")
        try:
            return await _wait(link, min(seconds, _life()))
        except Error as error:
            log.error("waiting for a link ended: %s", type(error).__name__)
            raise LinkRefused("Whether it is done cannot be read at the moment.") from None

    def _link(self, key: str) -> Link:
        if self._call.principal.kind is PrincipalKind.ANONYMOUS:
            raise LinkRefused("Anonymous callers get no links: they cannot be told apart.")
        if not _KEY.fullmatch(key):
            raise LinkRefused("The key of a link is 1 to 64 letters, digits and `_.-`.")
        return Link(self._call.tenant, self._call.id, key)


async def _wait(link: Link, seconds: float) -> bool:
    with waiters.expecting((link.tenant, link.name)) as news:
        try:
            async with asyncio.timeout(seconds):
                while not await in_database(links.is_open, link):
                    await news.wait()
                    news.clear()
        except TimeoutError:
            return await in_database(links.is_open, link)
    return True


async def warm(tenant: UUID) -> None:
    """Have at hand what `url` seals with. Where that cannot be had, `url` says so."""
    if not sealer.is_warm(tenant):
        with suppress(VaultError, Error):
            await in_database(sealer.warm, tenant)


def finish(slug: str, sealed: str, now: datetime) -> bool:
    """Somebody opened the link: tell whoever waits. Whether the link is good; again is harmless.

    Reads the database. Whatever is wrong with a link, the answer is the same.
    """
    found = _open(sealed)
    if found is None:
        return False
    link, expires_at = found
    tenant = tenants.tenant(link.tenant)
    if tenant is None or not tenant.open or tenant.slug != slug or expires_at <= now:
        return False
    links.open_link(link, expires_at, now)
    return True


def _seal(link: Link, expires_at: datetime) -> str:
    keys = sealer.at_hand(link.tenant)
    if keys is None:
        raise LinkRefused("No link can be made at the moment; try again soon.")
    payload = orjson.dumps([link.call.hex, link.key, int(expires_at.timestamp())])
    tenant = urlsafe_b64encode(link.tenant.bytes).rstrip(b"=").decode()
    return f"{tenant}.{keys.seal(Purpose.LINK, payload)}"


def _open(sealed: str) -> tuple[Link, datetime] | None:
    tenant, dot, token = sealed.partition(".")
    if not dot or not _TENANT.fullmatch(tenant):
        return None
    owner = UUID(bytes=urlsafe_b64decode(tenant + "=="))
    try:
        payload = sealer.unseal(Purpose.LINK, owner, token)
    except SealError:
        return None
    call, key, until = orjson.loads(payload)
    return Link(owner, UUID(call), key), datetime.fromtimestamp(until, UTC)


def _life() -> float:
    """How long a link is good, in seconds: the key that sealed it opens no longer."""
    return options().longest_answer_seconds


def _base(incoming: Incoming) -> str:
    """Where this server is reached. A Host has passed the guard, so it is one of ours, unless any is."""
    if options().public_url:
        return options().public_url
    host = incoming.headers.get("host")
    if not host or options().any_host:
        raise LinkRefused("This server does not know its own address: set MCPHOST_PUBLIC_URL.")
    return f"{options().scheme}://{host}"
