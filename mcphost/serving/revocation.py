"""End the work of callers whose access was revoked.

A request is authenticated once. Longer work (a slow call, a stream, a listener) is registered here
while it lasts. When the change log reports a changed token, member or tenant, the principals that
this may concern are read from the database again. Work ends if its caller would no longer be
admitted with the same rights, and also when its credential expires and none renews it.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from enum import Enum
from typing import Protocol
from uuid import UUID

from mcphost.feed.cache import MISS
from mcphost.feed.loop import ChangeNews
from mcphost.identity import selectors as identity
from mcphost.identity.selectors import anonymous
from mcphost.protocol.errors import FORBIDDEN, INTERNAL_ERROR, UNAUTHORIZED, ProtocolError
from mcphost.runtime.call import Principal
from mcphost.runtime.ports import SystemClock
from mcphost.serving import lookups, shutdown
from mcphost.serving.database import in_database
from mcphost.serving.events import Relay
from mcphost.serving.shutdown import Phase
from mcphost.tenants import selectors as tenants
from mcphost.tenants.selectors import TenantSnapshot

ASKED_AT_ONCE = 500

_CLOCK = SystemClock()
_PRESENTED = {"presented": True}
_STOPPED = ProtocolError(INTERNAL_ERROR, "The server shut down before the call was complete")
_EXPIRED = ProtocolError(UNAUTHORIZED, "This credential has expired", _PRESENTED)


class Presence(Protocol):
    """Registered work of a caller."""

    @property
    def principal(self) -> Principal: ...

    def revoke(self, refusal: ProtocolError) -> None:
        """End, because the caller has lost access; respond with `refusal` if a response is due."""


class Gap(Enum):
    """A gap in the change log: anything may have changed."""

    GAP = "gap"


Doubt = ChangeNews | Principal | Gap


class Presences:
    """The registered work of this process, by credential. Only for the event loop's thread."""

    def __init__(self) -> None:
        self._by_credential: dict[str, set[Presence]] = {}
        self._expiry: dict[Presence, asyncio.TimerHandle] = {}
        self._relay: Relay[Doubt] = Relay(self._look_into)

    def start(self) -> None:
        """Look into changes, on the running loop."""
        self._relay.start()

    async def stop(self) -> None:
        await self._relay.stop()

    def register(self, presence: Presence) -> None:
        """Register `presence` until `unregister`: it ends when its caller loses access.

        A change between the caller's authentication and this call is noticed, too, and the cut of this
        process.
        """
        principal = presence.principal
        self._schedule(presence, principal.expires_at)
        self._by_credential.setdefault(_credential(principal), set()).add(presence)
        if not _holds(principal):
            self._relay.put(principal)
        if shutdown.phase() is Phase.CUT:
            asyncio.get_running_loop().call_soon(presence.revoke, _STOPPED)

    def unregister(self, presence: Presence) -> None:
        """Remove a presence. Does nothing if it is not registered."""
        self._schedule(presence, None)
        credential = _credential(presence.principal)
        present = self._by_credential.get(credential)
        if present is not None:
            present.discard(presence)
            if not present:
                del self._by_credential[credential]

    def on_change(self, news: ChangeNews) -> None:
        """Queue a change of a token, a member or a tenant. From the change log's thread."""
        self._relay.put(news)

    def on_gap(self) -> None:
        """Queue a gap in the change log. From the change log's thread."""
        self._relay.put(Gap.GAP)

    def end_all(self) -> None:
        """End all work at shutdown. The error invites no retry, because tools have begun."""
        for present in tuple(self._by_credential.values()):
            for presence in tuple(present):
                presence.revoke(_STOPPED)

    async def _look_into(self, doubts: Sequence[Doubt]) -> None:
        """Compare the principals concerned with their current rights. May handle the same twice."""
        about = _About(doubts)
        # One principal of each credential that may be concerned; not of all, if avoidable.
        wide = about.everybody or about.people or about.tenants
        doubted = []
        for credential in tuple(self._by_credential) if wide else about.credentials:
            sample = next(iter(self._by_credential.get(credential, ())), None)
            if sample is not None and about.concerns(sample.principal):
                doubted.append(sample.principal)
        # What they are now; None if the credential is not valid any more.
        current_principals: dict[str, Principal | None] = {
            _credential(principal): None for principal in doubted
        }
        ids = [principal.token_id for principal in doubted if principal.token_id is not None]
        for start in range(0, len(ids), ASKED_AT_ONCE):
            chunk = ids[start : start + ASKED_AT_ONCE]
            current_principals |= await in_database(identity.current_principals, chunk)
        for principal in doubted:
            if principal.token_id is None:
                tenant = await lookups.tenant(principal.tenant)
                current_principals[_credential(principal)] = (
                    None if tenant is None else anonymous(tenant)
                )
        for credential, now in current_principals.items():
            for presence in tuple(self._by_credential.get(credential, ())):
                reason = refusal(presence.principal, now)
                if reason is not None:
                    presence.revoke(reason)
                elif now is not None and now.expires_at is not None:
                    self._schedule(presence, now.expires_at)

    def _schedule(self, presence: Presence, expires_at: datetime | None) -> None:
        """Look into a presence at this time, and no more at another: its token may be renewed."""
        timer = self._expiry.pop(presence, None)
        if timer is not None:
            timer.cancel()
        if expires_at is not None:
            seconds = (expires_at - _CLOCK.now()).total_seconds()
            loop = asyncio.get_running_loop()
            put = self._relay.put
            self._expiry[presence] = loop.call_later(seconds, put, presence.principal)


class _About:
    """The principals that changes may concern, indexed: there may be hundreds of changes at once,
    and thousands of callers. A change that names no credential, account or tenant concerns all."""

    def __init__(self, doubts: Sequence[Doubt]) -> None:
        self.credentials: set[str] = set()
        self.people: set[int | None] = set()
        self.tenants: set[UUID] = set()
        self.everybody = False
        for doubt in doubts:
            if isinstance(doubt, Principal):
                self.credentials.add(_credential(doubt))
            elif isinstance(doubt, Gap):
                self.everybody = True
            elif doubt.kind == "token":
                self.credentials.add(doubt.object_id)
            elif doubt.kind == "member" and doubt.object_id.isdecimal():
                self.people.add(int(doubt.object_id))
            elif doubt.tenant is not None:
                self.tenants.add(doubt.tenant)
            else:
                self.everybody = True

    def concerns(self, principal: Principal) -> bool:
        return (
            self.everybody
            or _credential(principal) in self.credentials
            or principal.user_id in self.people
            or principal.tenant in self.tenants
        )


def _credential(principal: Principal) -> str:
    return principal.token_id or f"anonymous at {principal.tenant}"


def _holds(principal: Principal) -> bool:
    """Whether the caches still have the principal as it was authenticated. Without a query."""
    if principal.token_id is not None:
        return identity.cached_principal(principal.token_id) == principal
    tenant = tenants.cached_tenant(principal.tenant)
    return tenant is not MISS and anonymous(tenant) is not None


def refusal(before: Principal, now: Principal | None) -> ProtocolError | None:
    """The error for a caller that no longer has the rights that it had before; None if it has."""
    if now is None and before.expires_at is not None and before.expires_at <= _CLOCK.now():
        return _EXPIRED
    if now is None:
        return ProtocolError(UNAUTHORIZED, "This credential is no longer valid", _PRESENTED)
    if not before.scopes <= now.scopes:
        return ProtocolError(FORBIDDEN, "This credential has lost a scope that it had")
    return None


async def current(before: Principal, tenant: TenantSnapshot) -> Principal | None:
    """The principal of a stored request as it is now; None if it has no access any more."""
    if before.token_id is None:
        now = anonymous(tenant)
        return None if now is None else replace(now, id=before.id)
    return (await in_database(identity.current_principals, [before.token_id])).get(before.token_id)


presences = Presences()
