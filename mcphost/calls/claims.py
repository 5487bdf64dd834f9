"""Claiming a round: as conditions, on which the records of whoever claims it depend.

A round is claimed by a row that can be there once. What is done with it later names the `nonce` of
whoever took it last, so that who was superseded changes nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, Final
from uuid import UUID

from mcphost.audit.conditions import Change, Condition
from mcphost.calls.changes import change
from mcphost.calls.states import ClaimState, before

KEPT_LONGER: Final = 120.0
"""Seconds on top of what was asked for: machines' clocks differ, and a state is taken for a minute
after its end."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A round that is to be run once: of which call, and with which answers (their digest).

    `seconds` is how long somebody may still come with these answers, and so how long its outcome is
    kept.
    """

    call: UUID
    round: int
    tenant: UUID
    answers: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Taking:
    """A claim as one process took it, for the `epoch`th time; `nonce` is this taking's alone."""

    call: UUID
    round: int
    tenant: UUID
    owner: UUID
    epoch: int
    nonce: str

    @classmethod
    def of(cls, wanted: Wanted, owner: UUID, epoch: int = 1) -> "Taking":
        """A taking that has yet to take hold."""
        return cls(wanted.call, wanted.round, wanted.tenant, owner, epoch, token_hex(16))

    @property
    def key(self) -> tuple[UUID, int]:
        """What is claimed."""
        return self.call, self.round


def claim(taking: Taking, wanted: Wanted) -> Condition:
    """Nobody has claimed the round before."""
    seconds = wanted.seconds + KEPT_LONGER
    return _condition(_CLAIM, taking, answers=wanted.answers, seconds=seconds)


def take_over(taking: Taking, wanted: Wanted) -> Condition:
    """Whoever had claimed it with the same answers let it go, and nobody has taken it since.

    Whether its owner is dead is for the caller to know: it is not looked at again.
    """
    return _condition(_TAKE_OVER, taking, answers=wanted.answers)


def conclude(taking: Taking, outcome: Callable[[], str]) -> Condition:
    """The claim is still this taking's, and now it is finished.

    `outcome` is called in the writer's thread for what is to be kept.
    """

    def row() -> Mapping[str, Any]:
        return {**_row(taking), "outcome": outcome()}

    return Condition(_CONCLUDE, taking.nonce, row)


def release(taking: Taking) -> Condition:
    """The claim is still this taking's, and now anybody's who has the same answers."""
    return _condition(_RELEASE, taking)


def _condition(what: Change, taking: Taking, **more: Any) -> Condition:
    return Condition(what, taking.nonce, lambda: {**_row(taking), **more})


def _row(taking: Taking) -> dict[str, Any]:
    # What names the claim comes first: rows are sorted by their text.
    return {
        "call": taking.call.hex,
        "round": taking.round,
        "tenant": taking.tenant.hex,
        "owner": taking.owner.hex,
        "epoch": taking.epoch,
        "nonce": taking.nonce,
    }


_COLUMNS = {
    "call": "uuid",
    "round": "bigint",
    "tenant": "uuid",
    "owner": "uuid",
    "epoch": "bigint",
    "nonce": "text",
    "answers": "text",
    "seconds": "double precision",
    "outcome": "text",
}


def _change(make: str, made: str) -> Change:
    return change(_COLUMNS, make, made)


def _made(state: ClaimState | None = None) -> str:
    """Whether a claim is as this taking made it: the nonce is drawn anew by each."""
    and_so = "" if state is None else f" AND c.state = '{state}'"
    return (
        "SELECT c.nonce FROM {r}, calls_claim c "  # noqa: S608 - constants
        f"WHERE c.call = r.call AND c.round = r.round AND c.nonce = r.nonce{and_so}"
    )


def _update(state: ClaimState, changes: str, condition: str) -> str:
    allowed = ", ".join(f"'{each}'" for each in sorted(before(state)))
    return (
        f"UPDATE calls_claim SET state = '{state}', {changes} FROM {{r}} "  # noqa: S608 - constants
        "WHERE calls_claim.call = r.call AND calls_claim.round = r.round "
        f"AND calls_claim.state IN ({allowed}) AND {condition} RETURNING calls_claim.nonce"
    )


_CLAIM = _change(
    "INSERT INTO calls_claim (call, round, tenant, answers, nonce, owner, epoch, state, taken_at, "  # noqa: S608
    "outcome, expires_at) SELECT r.call, r.round, r.tenant, r.answers, r.nonce, r.owner, r.epoch, "
    f"'{ClaimState.RUNNING}', {{now}}, '', {{later}} FROM {{r}} WHERE true "
    "ON CONFLICT DO NOTHING RETURNING nonce",
    _made(),
)
_TAKE_OVER = _change(
    _update(
        ClaimState.RUNNING,
        "owner = r.owner, nonce = r.nonce, epoch = r.epoch, taken_at = {now}",
        "calls_claim.epoch = r.epoch - 1 AND calls_claim.tenant = r.tenant "
        "AND calls_claim.answers = r.answers",
    ),
    _made(),
)
_MINE = (
    "calls_claim.nonce = r.nonce AND calls_claim.owner = r.owner AND calls_claim.epoch = r.epoch"
)
_CONCLUDE = _change(
    _update(ClaimState.FINISHED, "outcome = r.outcome", _MINE), _made(ClaimState.FINISHED)
)
_RELEASE = _change(_update(ClaimState.RELEASED, "outcome = ''", _MINE), _made(ClaimState.RELEASED))
