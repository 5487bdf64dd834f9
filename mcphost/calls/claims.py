"""Claims of rounds: taking one as a condition of audit records, reading, and pruning."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from secrets import token_hex
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.models import F, Q, Window
from django.db.models.functions import Now, RowNumber

from mcphost.audit.writer.conditions import POSTGRESQL, SQLITE, Condition, RowChange, Values
from mcphost.calls.conditions_sql import announcement, change
from mcphost.calls.models import Claim
from mcphost.calls.ownership import COLUMNS, LAPSED, NO_OWNER, is_mine, of_dead, owned
from mcphost.calls.states import CLAIM, ClaimState, before
from mcphost.feed import nodes
from mcphost.feed.services import announce

ROUND_LEFT: Final = "round_left"
"""The name of the change: a round waits for a process that has its function. The object id is the
call's."""
KEPT_LONGER: Final = 120.0
"""Seconds added to the time asked for: machines' clocks differ, and a state is accepted for a
minute after its end."""


@dataclass(frozen=True, slots=True)
class WantedClaim:
    """A round that must run only once. `answers` is the digest of the answers that it uses.

    `round` is the claim number, as in `models.Claim`. `seconds` is how long a client may still send
    these answers, and so how long the outcome is kept.
    """

    call: UUID
    round: int
    tenant: UUID
    answers: str
    seconds: float


@dataclass(frozen=True, slots=True)
class ClaimLease:
    """A lease of a claim by a process: the `epoch`th of this claim, with a unique `nonce`."""

    call: UUID
    round: int
    tenant: UUID
    owner: UUID
    epoch: int
    nonce: str

    @classmethod
    def of(cls, wanted_claim: WantedClaim, owner: UUID, epoch: int = 1) -> "ClaimLease":
        """Make a lease with a new nonce; it is not written yet."""
        return cls(
            wanted_claim.call, wanted_claim.round, wanted_claim.tenant, owner, epoch, token_hex(16)
        )

    @property
    def key(self) -> tuple[UUID, int]:
        """The claim's key: call and claim number."""
        return self.call, self.round


def claim(lease: ClaimLease, wanted_claim: WantedClaim) -> Condition:
    """Condition: the round is not claimed yet. Claims it."""
    seconds = wanted_claim.seconds + KEPT_LONGER
    return _condition(_CLAIM, lease, answers=wanted_claim.answers, seconds=seconds)


class LeftRound(NamedTuple):
    """What another process needs to run a round: the function that it must have, and the sealed request."""

    function: str
    request: str


def leave_round(lease: ClaimLease, wanted_claim: WantedClaim, left_round: LeftRound) -> Condition:
    """Condition: the round is not claimed yet. Claims it without an owner, and announces that.

    `lease` is of NO_OWNER and epoch 0.
    """
    seconds = wanted_claim.seconds + KEPT_LONGER
    row = {
        **_row(lease),
        "answers": wanted_claim.answers,
        "seconds": seconds,
        **left_round._asdict(),
    }
    effects = announcement(ROUND_LEFT, wanted_claim.tenant, wanted_claim.call.hex)
    return Condition(_LEAVE_ROUND, lease.nonce, lambda: Values(row, effects))


@transaction.atomic
def leave_claimed(wanted_claim: WantedClaim, left_round: LeftRound) -> None:
    """Let another process run a round that is claimed already, once its owner has released it or died.

    Without effect on a round that has ended, that was left before, or that has other answers.
    """
    rows = Claim.objects.filter(
        call=wanted_claim.call, round=wanted_claim.round, tenant=wanted_claim.tenant
    )
    unfinished = rows.exclude(state=ClaimState.FINISHED).filter(
        answers=wanted_claim.answers, function=""
    )
    if unfinished.update(**left_round._asdict()):
        announce(ROUND_LEFT, tenant=wanted_claim.tenant, object_id=wanted_claim.call.hex)


def take_over(lease: ClaimLease, wanted_claim: WantedClaim) -> Condition:
    """Condition: the claim has the same answers, is running or released, and was not taken since it
    was read. Takes it over.

    The caller must know that the owner is dead or has released it: this is not checked again.
    """
    return _condition(_TAKE_OVER, lease, answers=wanted_claim.answers)


def conclude(lease: ClaimLease, outcome: Callable[[], str]) -> Condition:
    """Condition: the claim still belongs to this lease. Finishes it.

    `outcome` is called in the writer's thread and returns the outcome to keep.
    """

    def values() -> Values:
        return Values({**_row(lease), "outcome": outcome()})

    return Condition(_CONCLUDE, lease.nonce, values)


def release(lease: ClaimLease) -> Condition:
    """Condition: the claim still belongs to this lease. Releases it, for the same answers."""
    return _condition(_RELEASE, lease)


def _condition(row_change: RowChange, lease: ClaimLease, **more: Any) -> Condition:
    return Condition(row_change, lease.nonce, lambda: Values({**_row(lease), **more}))


def _row(lease: ClaimLease) -> dict[str, Any]:
    # The claim's key comes first: rows are sorted by their text.
    return {
        "call": lease.call.hex,
        "round": lease.round,
        "tenant": lease.tenant.hex,
        **owned(lease.owner, lease.epoch),
        "nonce": lease.nonce,
    }


_COLUMNS = {
    "call": "uuid",
    "round": "bigint",
    "tenant": "uuid",
    **COLUMNS,
    "nonce": "text",
    "answers": "text",
    "seconds": "double precision",
    "outcome": "text",
    "function": "text",
    "request": "text",
}


def _change(name: str, make: str, made: str) -> RowChange:
    return change(f"claim_{name}", _COLUMNS, make, made=made)


def _made(state: ClaimState | None = None) -> str:
    """SQL for the nonces of leases that are still in effect: each has its own nonce."""
    and_so = "" if state is None else f" AND c.state = '{state}'"
    return (
        "SELECT c.nonce FROM {r}, calls_claim c "  # noqa: S608 - constants
        f"WHERE c.call = r.call AND c.round = r.round AND c.nonce = r.nonce{and_so}"
    )


def _update(state: ClaimState, changes: str, condition: str) -> str:
    allowed = ", ".join(f"'{source}'" for source in sorted(before(CLAIM, state)))
    return (
        f"UPDATE calls_claim SET state = '{state}', {changes} FROM {{r}} "  # noqa: S608 - constants
        "WHERE calls_claim.call = r.call AND calls_claim.round = r.round "
        f"AND calls_claim.state IN ({allowed}) AND {condition} RETURNING calls_claim.nonce"
    )


def _insert(state: ClaimState, function: str, request: str) -> str:
    """SQL that writes a claim in a state; `function` and `request` are the expressions of both."""
    return (
        "INSERT INTO calls_claim (call, round, tenant, answers, nonce, owner, epoch, state, taken_at, "  # noqa: S608 - constants
        "outcome, expires_at, function, request) SELECT r.call, r.round, r.tenant, r.answers, "
        f"r.nonce, r.owner, r.epoch, '{state}', {{now}}, '', {{later}}, {function}, {request} "
        "FROM {r} WHERE true ON CONFLICT DO NOTHING RETURNING nonce"
    )


_CLAIM = _change("new", _insert(ClaimState.RUNNING, "''", "''"), _made())
_LEAVE_ROUND = _change("leave", _insert(ClaimState.RELEASED, "r.function", "r.request"), _made())
_TAKE_OVER = _change(
    "over",
    _update(
        ClaimState.RUNNING,
        "owner = r.owner, nonce = r.nonce, epoch = r.epoch, taken_at = {now}",
        "calls_claim.epoch = r.epoch - 1 AND calls_claim.tenant = r.tenant "
        "AND calls_claim.answers = r.answers",
    ),
    _made(),
)
_IS_OWNED = f"calls_claim.nonce = r.nonce AND {is_mine('calls_claim')}"
_CONCLUDE = _change(
    "end",
    _update(ClaimState.FINISHED, "outcome = r.outcome, request = ''", _IS_OWNED),
    _made(ClaimState.FINISHED),
)
_RELEASE = _change(
    "release", _update(ClaimState.RELEASED, "outcome = ''", _IS_OWNED), _made(ClaimState.RELEASED)
)


@dataclass(frozen=True, slots=True)
class FoundClaim:
    """A claim as it is in the database. `lapsed`: its lease is over. `silent`: its owner is dead,
    too: it has sent no heartbeat, although it could have.

    `outcome` is the stored outcome, opaque here.
    """

    answers: str
    state: ClaimState
    owner: UUID
    epoch: int
    nonce: str
    outcome: str
    lapsed: bool
    silent: bool


def find_claim(call: UUID, number: int, tenant: UUID) -> FoundClaim | None:
    """The claim of a round; None if there is none of `tenant`."""
    rows = Claim.objects.filter(call=call, round=number, tenant=tenant)
    row = rows.annotate(lapsed=LAPSED).first()
    if row is None:
        return None
    return FoundClaim(
        row.answers,
        ClaimState(row.state),
        row.owner,
        row.epoch,
        row.nonce,
        row.outcome,
        row.lapsed,
        row.lapsed and nodes.can_judge() and not nodes.lives(row.owner),
    )


class LeftClaim(NamedTuple):
    """A round that was left to another process, and that no process runs now."""

    call: UUID
    round: int
    tenant: UUID
    answers: str
    epoch: int


def left_claims(
    functions: Collection[str], process: UUID, without: Collection[UUID] = ()
) -> tuple[LeftClaim, ...]:
    """The rounds that wait for a process with one of these functions, as seen by `process`, which is
    alive: of the tenants in turn, of each the longest first. At most LEFT_AT_ONCE, and none of the
    tenants `without`."""
    waiting = Claim.objects.exclude(state=ClaimState.FINISHED).filter(
        Q(state=ClaimState.RELEASED) | of_dead(process),
        function__in=functions,
        expires_at__gt=Now(),
    )
    turn = Window(RowNumber(), partition_by=F("tenant"), order_by=F("taken_at").asc())
    rows = waiting.exclude(tenant__in=without).annotate(turn=turn)
    rows = rows.order_by("turn", "taken_at", "call", "round")[:LEFT_AT_ONCE]
    return tuple(LeftClaim(*row) for row in rows.values_list(*LeftClaim._fields))


def left_request(left_claim: LeftClaim) -> str:
    """The sealed request of a left round; empty if it has ended."""
    rows = Claim.objects.filter(
        call=left_claim.call, round=left_claim.round, tenant=left_claim.tenant
    )
    return rows.values_list("request", flat=True).first() or ""


CANCELLED: Final = "cancelled"
"""Stands for the answers of the rounds of a cancelled call. The digest of answers is another text."""


def cancel(call: UUID, tenant: UUID, last: int, seconds: float) -> bool:
    """Claim all rounds of a call, up to the number `last`, that no request has claimed: none of them
    will run. False if a round is claimed that has not ended.

    In the caller's transaction: roll it back if this returns False. A request that claims one of the
    rounds meanwhile waits for that transaction's end.
    """
    nonce = token_hex(16)
    until = Now() + timedelta(seconds=seconds + KEPT_LONGER)
    Claim.objects.bulk_create(
        [
            Claim(
                call=call,
                round=number,
                tenant=tenant,
                answers=CANCELLED,
                nonce=nonce,
                owner=NO_OWNER,
                epoch=1,
                state=ClaimState.FINISHED,
                taken_at=Now(),
                expires_at=until,
            )
            for number in range(1, last + 1)
        ],
        ignore_conflicts=True,
    )
    other_claims = Claim.objects.filter(call=call).exclude(nonce=nonce)
    return not other_claims.exclude(state=ClaimState.FINISHED).exists()


PRUNED_AT_ONCE = 500
LEFT_AT_ONCE: Final = 200

# A running claim is kept for a day longer, in case its round takes longer than `seconds`.
_PRUNE = (
    "DELETE FROM calls_claim WHERE (call, round) IN (SELECT call, round FROM calls_claim "  # noqa: S608
    f"WHERE expires_at < {{now}} AND (state <> '{ClaimState.RUNNING}' OR expires_at < {{yesterday}}) "
    f"ORDER BY expires_at LIMIT {PRUNED_AT_ONCE}{{unlocked}})"
)
_PRUNES = {
    SQLITE: _PRUNE.format(
        now="strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now')",
        yesterday="strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', '-1 day')",
        unlocked="",
    ),
    POSTGRESQL: _PRUNE.format(
        now="statement_timestamp()",
        yesterday="statement_timestamp() - interval '1 day'",
        unlocked=" FOR UPDATE SKIP LOCKED",
    ),
}


def prune() -> int:
    """Delete up to 500 expired claims; return how many."""
    connection = connections[DEFAULT_DB_ALIAS]
    with connection.cursor() as cursor:
        cursor.execute(_PRUNES[connection.vendor], ())
        return int(cursor.rowcount)


def settle(leases: Sequence[ClaimLease], state: ClaimState) -> int:
    """Change the claims that still belong to these leases and run to `state`: released, or finished without an
    outcome. Return how many.

    At most 500 per transaction.
    """
    return sum(
        _settle(leases[at : at + PRUNED_AT_ONCE], state)
        for at in range(0, len(leases), PRUNED_AT_ONCE)
    )


@transaction.atomic
def _settle(leases: Sequence[ClaimLease], state: ClaimState) -> int:
    return sum(
        Claim.objects.filter(
            call=lease.call, round=lease.round, nonce=lease.nonce, state=ClaimState.RUNNING
        ).update(state=state)
        for lease in leases
    )
