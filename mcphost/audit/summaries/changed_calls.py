"""Find the calls with entries that were committed since the last look.

Ids of entries are made before they are committed, seconds before while the database is away, on clocks
that differ. So a cursor over ids would lose entries. Instead:

- SQLite numbers the rows of a table in the order of their commits, because one process at a time
  writes, and no entry is ever deleted. The number is the cursor.
- PostgreSQL knows for each row by which transaction it was written (`xmin`), and whether an earlier snapshot
  saw that transaction. A snapshot does not name subtransactions, in which actions of users are recorded:
  their rows are new while any transaction is as old (the snapshot's own `xmin`). New rows are in the last pages of the table, almost
  always; what vacuum put elsewhere is found by a look at all recent ids, every half minute.

Either may find entries twice, which does no harm (`batches`).
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from mcphost.audit.models import Entry, Following
from mcphost.audit.records import ANSWER_RECEIVED, QUESTION_ASKED, ROUND_FINISHED, ROUND_STARTED
from mcphost.audit.selectors import first_id
from mcphost.audit.summaries.bulk_sql import SQLITE, fetch, vendor

MAX_CALLS: Final = 10_000
"""Most calls of one look. If there are more, they are read as missing entries, bit by bit."""
PORTION: Final = 2_000
"""Most entries of one look on SQLite, and at a time of those that are missing."""
PAGES: Final = 512
"""So many pages at the end of PostgreSQL's table are looked at each time."""
WIDE_EVERY: Final = timedelta(seconds=30)
WIDE: Final = timedelta(minutes=15)
"""How old the ids may be that the wide look finds."""

# xmin has 32 bits of the transaction's number: the others are those of a number that is not smaller,
# also than those of the reader's own subtransactions, which its snapshot does not know.
_NOW = "pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 1048576"
# A snapshot does not name the reader's own transaction either: its rows are always found.
_OWN = "COALESCE(pg_current_xact_id_if_assigned()::text::bigint, 9223372036854775807)"
_XMIN = "(t.n - ((t.n - e.xmin::text::bigint) & 4294967295))"
_IN_SUBTRANSACTIONS = (
    f"(e.action NOT IN ('{ROUND_STARTED}', '{ROUND_FINISHED}', '{QUESTION_ASKED}', '{ANSWER_RECEIVED}') "
    "OR e.outcome = 'cancelled')"
)
_FIND_CALLS = (
    "WITH t AS MATERIALIZED (SELECT {now} AS n, {own} AS own, "
    "pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS floor, "
    "pg_relation_size('audit_entry') / current_setting('block_size')::int AS pages) "
    "SELECT t.floor, pg_current_snapshot()::text, t.pages, "
    "ARRAY(SELECT DISTINCT replace(e.call::text, '-', '') FROM audit_entry e "
    "WHERE {where} AND e.call IS NOT NULL AND {xmin} >= %s AND ({often} "
    "OR {xmin} >= t.own OR NOT pg_visible_in_snapshot({xmin}::text::xid8, %s::pg_snapshot)) LIMIT {most}) FROM t"
)
_WORDS = {
    "now": _NOW,
    "own": _OWN,
    "xmin": _XMIN,
    "often": _IN_SUBTRANSACTIONS,
    "most": MAX_CALLS + 1,
}
_NEAR = _FIND_CALLS.format(where="e.ctid >= %s::tid", **_WORDS)
_WIDE = _FIND_CALLS.format(where="e.id >= %s::uuid", **_WORDS)
NOTHING: Final = "1:1:"
"""The snapshot that sees nothing."""


class UnseenCalls(NamedTuple):
    """The calls that were found, and the position from which the next search goes on.

    `more`: there are more entries now. `overflows`: there are too many, and all since the last
    search count as missing.
    """

    calls: Collection[str]
    position: int
    snapshot: str = ""
    page: int = 0
    more: bool = False
    overflows: bool = False


def find_calls(following: Following) -> UnseenCalls:
    """Find the calls with entries that were committed since the position."""
    if vendor() == SQLITE:
        return _find_on_sqlite(following.position)
    page = max(0, following.page - PAGES)
    unseen_calls = _find_on_postgresql(_NEAR, f"({page},0)", following.position, following.seen)
    if unseen_calls.page < following.page:  # the table was rewritten
        unseen_calls = _find_on_postgresql(_NEAR, "(0,0)", following.position, following.seen)
    return unseen_calls


def find_recent_calls(following: Following, now: datetime) -> UnseenCalls:
    """Find the calls with entries of recent ids that were committed since the last wide look."""
    if vendor() == SQLITE:
        return UnseenCalls((), 0)
    oldest = min(following.checked_at or now, now) - WIDE
    return _find_on_postgresql(
        _WIDE, first_id(oldest).hex, following.checked, following.checked_seen
    )


def end() -> UnseenCalls:
    """Return the position behind all entries."""
    if vendor() == SQLITE:
        ((last,),) = fetch("SELECT COALESCE(MAX(rowid), 0) FROM audit_entry")
        return UnseenCalls((), last)
    return _find_on_postgresql(_NEAR, "(4294967290,0)", 0, "")


def missing(following: Following) -> tuple[Collection[str], UUID | None]:
    """Find the calls of the next portion of missing entries, from the newest to the oldest, and where
    the missing ones end then; None if that was the last portion."""
    query = Entry.objects.filter(id__lt=following.missing_until).order_by("-id")
    if following.missing_from is not None:
        query = query.filter(id__gte=following.missing_from)
    rows = list(query.values_list("id", "call")[:PORTION])
    calls = {call.hex for _, call in rows if call is not None}
    return calls, rows[-1][0] if len(rows) == PORTION else None


def _find_on_sqlite(position: int) -> UnseenCalls:
    rows = fetch(
        "SELECT rowid, call FROM audit_entry WHERE rowid > %s ORDER BY rowid LIMIT %s",
        position,
        PORTION,
    )
    if not rows:
        ((last,),) = fetch("SELECT COALESCE(MAX(rowid), 0) FROM audit_entry")
        return UnseenCalls((), min(position, last), overflows=last < position)
    calls = {call for _, call in rows if call is not None}
    return UnseenCalls(calls, rows[-1][0], more=len(rows) == PORTION)


def _find_on_postgresql(
    statement: str, start: str, position: int, seen_snapshot: str
) -> UnseenCalls:
    ((floor, snapshot, pages, calls),) = fetch(statement, start, position, seen_snapshot or NOTHING)
    if len(calls) > MAX_CALLS or floor < position:  # restored, the numbers begin anew
        return UnseenCalls((), floor, snapshot, pages, overflows=True)
    return UnseenCalls(calls, floor, snapshot, pages)
