"""Taking away what a caller was admitted with ends what it has under way.

A request is admitted once. What goes on for longer than a moment (a slow call, a stream, a
listener) is present here while it does; when the feed tells that a token, a member or a tenant
changed, those whom that may concern are held against the database anew, and end if they could not
come in any more as they are. So do they when their credential runs out.
"""

import asyncio
from collections.abc import Iterator, Sequence
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
from mcphost.serving import snapshots
from mcphost.serving.hop import in_database
from mcphost.serving.relay import Relay
from mcphost.tenants import selectors as tenants

ASKED_AT_ONCE = 500

_CLOCK = SystemClock()
_PRESENTED = {"presented": True}
_STOPPED = ProtocolError(INTERNAL_ERROR, "The server stopped before this was over")
_EXPIRED = ProtocolError(UNAUTHORIZED, "This credential has expired", _PRESENTED)


class Presence(Protocol):
    """Something of a caller's that is under way."""

    @property
    def principal(self) -> Principal: ...

    def lose(self, refusal: ProtocolError) -> None:
        """The caller's authority is gone: end, and answer with `refusal` if there is an answer."""


class Gap(Enum):
    """Anything may have changed unheard."""

    GAP = "gap"


Doubt = ChangeNews | Principal | Gap


class Presences:
    """All that is under way in this process, by credential. Only for the event loop's thread."""

    def __init__(self) -> None:
        self._by_credential: dict[str, set[Presence]] = {}
        self._expiry: dict[Presence, asyncio.TimerHandle] = {}
        self._relay: Relay[Doubt] = Relay(self._look_into)

    def enter(self, presence: Presence) -> None:
        """Have `presence` end when its caller's authority does, until `leave`.

        What changed between the caller's admission and this is noticed too.
        """
        self._relay.attach()
        principal = presence.principal
        self._by_credential.setdefault(_credential(principal), set()).add(presence)
        if principal.expires_at is not None:
            seconds = (principal.expires_at - _CLOCK.now()).total_seconds()
            loop = asyncio.get_running_loop()
            self._expiry[presence] = loop.call_later(seconds, presence.lose, _EXPIRED)
        if not _holds(principal):
            self._relay.put(principal)

    def leave(self, presence: Presence) -> None:
        """It is over. Harmless when it never entered."""
        timer = self._expiry.pop(presence, None)
        if timer is not None:
            timer.cancel()
        credential = _credential(presence.principal)
        present = self._by_credential.get(credential)
        if present is not None:
            present.discard(presence)
            if not present:
                del self._by_credential[credential]

    def heard(self, news: ChangeNews) -> None:
        """The feed tells of a token, a member or a tenant. From the feed's thread."""
        self._relay.put(news)

    def heard_nothing(self) -> None:
        """There was a gap in the feed. From the feed's thread."""
        self._relay.put(Gap.GAP)

    def end_all(self) -> None:
        """The process leaves: nothing goes on. No invitation to call again: tools have begun."""
        for present in tuple(self._by_credential.values()):
            for presence in tuple(present):
                presence.lose(_STOPPED)

    async def _look_into(self, doubts: Sequence[Doubt]) -> None:
        """Hold those concerned against what holds now. May be told the same twice."""
        about = _About(doubts)
        doubted = [one for one in self._principals(about) if about.concerns(one)]
        for credential, now in await _present_authority(doubted):
            for presence in tuple(self._by_credential.get(credential, ())):
                why = refusal(presence.principal, now)
                if why is not None:
                    presence.lose(why)

    def _principals(self, about: "_About") -> Iterator[Principal]:
        """One for each credential that may be concerned: not all of them, if that can be helped."""
        wide = about.everybody or about.people or about.tenants
        for credential in tuple(self._by_credential) if wide else about.credentials:
            for presence in self._by_credential.get(credential, ()):
                yield presence.principal
                break


class _About:
    """Whom doubts are about. Of news there may be hundreds at once, and of callers thousands."""

    def __init__(self, doubts: Sequence[Doubt]) -> None:
        self.credentials: set[str] = set()
        self.people: set[int | None] = set()
        self.tenants: set[UUID] = set()
        self.everybody = False
        for doubt in doubts:
            self._add(doubt)

    def concerns(self, principal: Principal) -> bool:
        return (
            self.everybody
            or _credential(principal) in self.credentials
            or principal.user_id in self.people
            or principal.tenant in self.tenants
        )

    def _add(self, doubt: Doubt) -> None:
        """News that does not say whom it is about is about everybody."""
        if isinstance(doubt, Principal):
            self.credentials.add(_credential(doubt))
        elif isinstance(doubt, Gap):
            self.everybody = True
        elif doubt.what == "token":
            self.credentials.add(doubt.object_id)
        elif doubt.what == "member" and doubt.object_id.isdecimal():
            self.people.add(int(doubt.object_id))
        elif doubt.tenant is not None:
            self.tenants.add(doubt.tenant)
        else:
            self.everybody = True


def _credential(principal: Principal) -> str:
    return principal.token_id or f"anybody at {principal.tenant}"


def _holds(principal: Principal) -> bool:
    """Whether memory still says what the caller was admitted by. Never a query."""
    if principal.token_id is not None:
        return identity.remembered(principal.token_id) == principal
    tenant = tenants.cached_tenant(principal.tenant)
    return tenant is not MISS and anonymous(tenant) is not None


async def _present_authority(
    doubted: Sequence[Principal],
) -> list[tuple[str, Principal | None]]:
    """What the credentials of these callers are worth now, None for nothing."""
    found: dict[str, Principal | None] = {_credential(principal): None for principal in doubted}
    ids = [principal.token_id for principal in doubted if principal.token_id is not None]
    for start in range(0, len(ids), ASKED_AT_ONCE):
        found |= await in_database(identity.standing, ids[start : start + ASKED_AT_ONCE])
    for principal in doubted:
        if principal.token_id is None:
            tenant = await snapshots.tenant(principal.tenant)
            found[_credential(principal)] = None if tenant is None else anonymous(tenant)
    return list(found.items())


def refusal(before: Principal, now: Principal | None) -> ProtocolError | None:
    """Why a caller may not go on, if it may not: it came in with rights that it has no more."""
    if now is None:
        return ProtocolError(UNAUTHORIZED, "This credential is not good any more", _PRESENTED)
    if not before.scopes <= now.scopes:
        return ProtocolError(FORBIDDEN, "This credential may not do any more what it could")
    return None


presences = Presences()
