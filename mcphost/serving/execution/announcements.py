"""Announcements by tools (`ctx.announce`): checked at once, written in batches."""

import logging
import time
from collections.abc import Iterator, Mapping
from threading import Lock
from uuid import UUID

from mcphost.catalogue.selectors import cached_offering, offering
from mcphost.catalogue.updates import announce_updates, nothing_at, served_as
from mcphost.feed.cache import MISS
from mcphost.protocol.uris import normalize, percent_encoded
from mcphost.runtime.ports import NotAnnouncedError
from mcphost.serving.database import in_database
from mcphost.serving.events import Relay

log = logging.getLogger(__name__)

APART_SECONDS = 0.1
WRITTEN_AT_ONCE = 500
MAX_PER_TENANT = 100
"""How many topics of one tenant may wait to be written, for a tenth of a second."""


class Announcements:
    """Collects announcements of all tenants and writes them, at most ten times a second.

    An announcement that is repeated before it was written is written once.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: dict[UUID, dict[str, bool]] = {}
        self._next = 0.0
        self._relay: Relay[None] = Relay(self._write, self._pause)

    def start(self) -> None:
        """Write what is announced, on the running loop."""
        self._relay.start()

    async def stop(self) -> None:
        """Write no more by itself; `flush` writes what is left."""
        await self._relay.stop()

    def add(self, tenant: UUID, topic: str, *, checked: bool) -> None:
        """Queue a URI or the name of a list. From any thread.

        A topic that is not `checked` is compared with the tenant's offering before it is written.
        Raises NotAnnouncedError when too many topics of the tenant are waiting.
        """
        with self._lock:
            waiting = self._waiting.setdefault(tenant, {})
            if len(waiting) >= MAX_PER_TENANT and topic not in waiting:
                raise NotAnnouncedError(
                    f"Too many announcements: {MAX_PER_TENANT} are waiting to be sent."
                )
            waiting[topic] = checked or waiting.get(topic, False)
        self._relay.put(None)

    def flush(self) -> None:
        """Write all waiting topics now. On an error they stay queued, and the error is raised."""
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
    """The topics that the tenant serves. Any other announcement is its author's mistake."""
    for uri, checked in uris.items():
        if checked or served_as(offering(tenant), uri) is not None:
            yield uri
        else:
            log.warning("an announcement was dropped: %s", nothing_at(uri))


class TenantAnnouncer:
    """Implements `runtime.ports.Announcer` for the calls of one tenant.

    A URI is compared with the tenant's cached offering. If a change has just removed that from the
    cache, the URI is checked when it is written, because this code must not wait for the database.
    """

    __slots__ = ("_tenant",)

    def __init__(self, tenant: UUID) -> None:
        self._tenant = tenant

    def updated(self, uri: str) -> None:
        served = cached_offering(self._tenant)
        normal = _normal(uri) if served is MISS else served_as(served, uri)
        if normal is None:
            raise NotAnnouncedError(nothing_at(uri))
        announcements.add(self._tenant, normal, checked=served is not MISS)

    def list_changed(self, name: str) -> None:
        announcements.add(self._tenant, name, checked=True)


def _normal(uri: str) -> str | None:
    try:
        return normalize(percent_encoded(uri))
    except ValueError:
        return None


announcements = Announcements()
