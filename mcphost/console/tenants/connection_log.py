"""The connection log of a tenant in words: how far clients come in connecting, and where they stop."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from django.contrib.auth.models import User

from mcphost.identity.oauth.connection_log import (
    ANONYMOUS,
    ConnectionAttempt,
    StepKind,
    attempts,
    attempts_of,
)
from mcphost.tenants.access import allowed
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

MAX_SHOWN: Final = 30
WORDS: Final = {
    StepKind.CHALLENGED: "called without a token, and was told where to sign in",
    StepKind.METADATA: "read where to sign in",
    StepKind.SERVER_METADATA: "read how to sign in",
    StepKind.OPENED: "opened the sign-in page",
    StepKind.REGISTERED: "registered",
    StepKind.DOCUMENT: "metadata document read",
    StepKind.SIGNED_IN: "signed in, and saw the consent page",
    StepKind.REFUSED: "refused",
    StepKind.DECLINED: "declined",
    StepKind.CONSENTED: "allowed",
    StepKind.CODE_REFUSED: "code refused",
    StepKind.REDEEMED: "code redeemed",
    StepKind.PRESENTED: "token presented",
    StepKind.FIRST_CALL: "first call",
    StepKind.ENDED: "ended",
    StepKind.MALFORMED: "presented something that is no token of this server",
    StepKind.UNKNOWN_TOKEN: "presented a token that this tenant does not know, or no longer",
    StepKind.EXPIRED: "presented an expired token",
    StepKind.REVOKED: "presented a revoked token",
    StepKind.INACTIVE: "presented a token whose owner is disabled or gone",
    StepKind.ELSEWHERE: "presented a token at the address of another tenant",
}
ADVICE: Final = {
    StepKind.CHALLENGED: "If nothing follows, the client cannot sign in with a browser: give it a token.",
    StepKind.METADATA: "If nothing follows, the client may not reach the authorization server: run Doctor.",
    StepKind.SERVER_METADATA: "If nothing follows, the client may not be able to register: run Doctor.",
    StepKind.OPENED: "If nothing follows, the person has not signed in.",
    StepKind.SIGNED_IN: "The person has not decided yet, or has closed the page.",
    StepKind.CONSENTED: "The client has not redeemed its code: it may have been closed, or not reach /token.",
    StepKind.REDEEMED: "The client has a token, and has not used it yet.",
    StepKind.MALFORMED: "Check what is set as its header Authorization: “Bearer”, a space, and the whole token.",
    StepKind.UNKNOWN_TOKEN: "Connect it again, or give it a token of this tenant.",
    StepKind.EXPIRED: "The client should refresh it, or needs a new one.",
    StepKind.REVOKED: "Connect it again, or give it a new token.",
    StepKind.INACTIVE: "Give it a token of another owner.",
    StepKind.ELSEWHERE: "Check the address that is set in the client.",
}
_FAULTS: Final = frozenset(
    {
        StepKind.REFUSED,
        StepKind.DECLINED,
        StepKind.CODE_REFUSED,
        StepKind.ENDED,
        StepKind.MALFORMED,
        StepKind.UNKNOWN_TOKEN,
        StepKind.EXPIRED,
        StepKind.REVOKED,
        StepKind.INACTIVE,
        StepKind.ELSEWHERE,
    }
)
_DONE: Final = frozenset({StepKind.PRESENTED, StepKind.FIRST_CALL})


class LoggedStep(NamedTuple):
    """A step in words. `is_fault` says whether connecting stopped there."""

    text: str
    detail: str
    at: datetime
    is_fault: bool


class LoggedAttempt(NamedTuple):
    """How far a client came; `advice` says what to do where it stopped."""

    attempt: ConnectionAttempt
    steps: Sequence[LoggedStep]
    advice: str
    is_connected: bool


def of_tenant(user: User, tenant: Tenant) -> Sequence[LoggedAttempt]:
    """Return the log of all clients for those who edit the tenant, and of their own for others."""
    everything = allowed(user, tenant, Permission.EDIT_TOOLS)
    logged = attempts(tenant.pk, None if everything else user.pk)
    return [_in_words(attempt) for attempt in logged[:MAX_SHOWN]]


def of_user(user: User) -> Sequence[LoggedAttempt]:
    """Return the log of a user's own clients, in all tenants of the user."""
    return [_in_words(attempt) for attempt in attempts_of(user.pk)[:MAX_SHOWN]]


def _in_words(attempt: ConnectionAttempt) -> LoggedAttempt:
    last = attempt.last
    logged = [
        LoggedStep(WORDS[step.step], step.detail, step.at, step.step in _FAULTS)
        for step in attempt.steps
    ]
    advice = ADVICE.get(last.step, "")
    if not attempt.name and not attempt.person:
        # Steps of different clients, which need not follow each other.
        advice = ADVICE[last.step] if last.step in ANONYMOUS & _FAULTS else ""
    return LoggedAttempt(attempt, logged, advice, last.step in _DONE)
