"""Changing what is under way, beside what the record writer does."""

from collections.abc import Sequence

from django.db import DEFAULT_DB_ALIAS, connections, transaction

from mcphost.audit.conditions import POSTGRESQL, SQLITE
from mcphost.calls.claims import Taking
from mcphost.calls.models import Claim
from mcphost.calls.states import ClaimState

AT_ONCE = 500

# A running one is left for a day, in case its round is longer than the time for which it was wanted.
_PRUNE = (
    "DELETE FROM calls_claim WHERE (call, round) IN (SELECT call, round FROM calls_claim "  # noqa: S608
    f"WHERE expires_at < {{now}} AND (state <> '{ClaimState.RUNNING}' OR expires_at < {{yesterday}}) "
    f"ORDER BY expires_at LIMIT {AT_ONCE}{{unlocked}})"
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
    """Forget up to 500 claims whose time is over; return how many there were."""
    connection = connections[DEFAULT_DB_ALIAS]
    with connection.cursor() as cursor:
        cursor.execute(_PRUNES[connection.vendor], ())
        return int(cursor.rowcount)


def release(takings: Sequence[Taking]) -> int:
    """Let claims go that are still as these takings made them; return how many there were.

    In transactions of at most 500 each.
    """
    return sum(_release(takings[at : at + AT_ONCE]) for at in range(0, len(takings), AT_ONCE))


@transaction.atomic
def _release(takings: Sequence[Taking]) -> int:
    return sum(
        Claim.objects.filter(
            call=taking.call, round=taking.round, nonce=taking.nonce, state=ClaimState.RUNNING
        ).update(state=ClaimState.RELEASED)
        for taking in takings
    )
