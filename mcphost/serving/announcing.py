"""What tools announce (`ctx.announce`): checked at once, written together a moment later."""

import logging
import time
from collections.abc import Iterator, Mapping
from threading import Lock
from uuid import UUID

from mcphost.catalogue.selectors import cached_offering, offering
from mcphost.catalogue.updates import announce_updates, nothing_at, served_as
from mcphost.feed.cache import MISS
from mcphost.protocol.uris import normalize
from mcphost.runtime.ports import NotAnnounced
from mcphost.serving.hop import in_database
from mcphost.serving.relay import Relay

log = logging.getLogger(__name__)

APART_SECONDS = 0.1
WRITTEN_AT_ONCE = 500
MOST_PER_TENANT = 100
"""How many URIs of one tenant may wait to be written, which they do for a tenth of a second."""


class Announcements:
    """Collects announcements of all tenants and writes them, at most ten times a second.

    What is announced again before it was written is written once.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: dict[UUID, dict[str, bool]] = {}
        self._next = 0.0
        self._relay: Relay[None] = Relay(self._write, self._pause)

    def attach(self) -> None:
        """Write from the running loop from now on."""
        self._relay.attach()

    def add(self, tenant: UUID, topic: str, *, checked: bool) -> None:
        """Have a URI, or the name of a list, written. From any thread. Raises NotAnnounced when the tenant has too many.

        What is not `checked` is held against what the tenant serves before it is written.
        """
        with self._lock:
            waiting = self._waiting.setdefault(tenant, {})
            if len(waiting) >= MOST_PER_TENANT and topic not in waiting:
                raise NotAnnounced(
                    f"Too many announcements: {MOST_PER_TENANT} are waiting to be told."
                )
            waiting[topic] = checked or waiting.get(topic, False)
        self._relay.put(None)

    def flush(self) -> None:
        """Write what waits, now. A database error leaves it waiting, and is raised."""
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        try:
            about = [
                (tenant, uri) for tenant, uris in waiting.items() for uri in _good(tenant, uris)
            ]
            for start in range(0, len(about), WRITTEN_AT_ONCE):
                announce_updates(about[start : start + WRITTEN_AT_ONCE])
        except Exception:
            with self._lock:
                for tenant, uris in waiting.items():
                    self._waiting[tenant] = {**uris, **self._waiting.get(tenant, {})}
            raise

    async def _write(self, _: object) -> None:
        await in_database(self.flush)

    def _pause(self) -> float:
        now = time.monotonic()
        at = max(now, self._next)
        self._next = at + APART_SECONDS
        return at - now


def _good(tenant: UUID, uris: Mapping[str, bool]) -> Iterator[str]:
    """Those that the tenant serves: an announcement of anything else is its author's mistake."""
    for uri, checked in uris.items():
        if checked or served_as(offering(tenant), uri) is not None:
            yield uri
        else:
            log.warning("an announcement was dropped: %s", nothing_at(uri))


class TenantAnnouncer:
    """Fills `runtime.ports.Announcer` for the calls of one tenant.

    A URI is checked against what is in memory of the tenant. If a change has just pushed that out,
    it is checked when it is written, because here nobody may wait for the database.
    """

    __slots__ = ("_tenant",)

    def __init__(self, tenant: UUID) -> None:
        announcements.attach()
        self._tenant = tenant

    def updated(self, uri: str) -> None:
        served = cached_offering(self._tenant)
        normal = _normal(uri) if served is MISS else served_as(served, uri)
        if normal is None:
            raise NotAnnounced(nothing_at(uri))
        announcements.add(self._tenant, normal, checked=served is not MISS)

    def list_changed(self, name: str) -> None:
        announcements.add(self._tenant, name, checked=True)


def _normal(uri: str) -> str | None:
    try:
        return normalize(uri)
    except ValueError:
        return None


announcements = Announcements()
