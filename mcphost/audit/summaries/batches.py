"""Make the rows of some calls again from their entries, and let their time be counted again, in one transaction.

Calls that asked nothing are projected by one statement of SQL, all others in Python. Doing it again
changes nothing, so it does not matter which entries have been seen before.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import orjson
from django.db import transaction

from mcphost.audit.entries import EntryView, view
from mcphost.audit.models import CallMark, CallSummary, ChangedCalls, Entry, Following
from mcphost.audit.open_calls import Losses
from mcphost.audit.records import (
    GOES_ON,
    INPUT_REQUIRED,
    ROUND_FINISHED,
    ROUND_STARTED,
)
from mcphost.audit.selectors import MOST_ENTRIES, part_of_call
from mcphost.audit.summaries import counting
from mcphost.audit.summaries.histograms import bucket_of
from mcphost.audit.summaries.projection import COMPLETE, REASON_LENGTH, Projection, project
from mcphost.audit.summaries.sets import (
    SQLITE,
    as_json,
    fetch,
    id_text,
    ids_of,
    run,
    vendor,
)

AT_ONCE: Final = 1_000
"""How many calls are projected in one transaction: on SQLite it keeps others from writing."""
KEPT_CHANGES: Final = 300
"""Of how many transactions it is known which calls they changed. A live list that has seen fewer is loaded again."""
ASKED: Final = "asked"
REFUSED: Final = "refused"
REASON: Final = "reason"
"""Marks of calls that asked, that were refused something, and that have a reason (of an error, say). An
outcome of answers is a mark too, with ANSWERED before it, and so is a state other than `complete`."""
ANSWERED: Final = "answer:"

_PLAIN: Final = (
    f"action IN ('{ROUND_STARTED}', '{ROUND_FINISHED}') AND outcome <> '{INPUT_REQUIRED}'"
)
_FINAL: Final = f"action = '{ROUND_FINISHED}' AND outcome NOT IN ('" + "', '".join(GOES_ON) + "')"
_COLUMNS: Final = (
    "call", "tenant", "last", "at", "first_at", "target", "method", "actor_kind", "actor_id",
    "caller", "token_id", "client_name", "delivery", "trace_id", "state", "is_error", "reason",
    "duration_us", "expires_at", "sealed_by", "entries", "asked", "refused", "details",
)  # fmt: skip
_REPLACED: Final = ", ".join(f"{each} = excluded.{each}" for each in _COLUMNS[1:])


@dataclass(frozen=True, slots=True)
class CallBatch:
    """Calls to project, by the text of their ids. `again`: also those without new entries, because time has
    passed or a key was lost. `late`: they ran long ago, so no list is told of them."""

    calls: Collection[str]
    again: bool = False
    late: bool = False


@transaction.atomic
def write(batch: CallBatch, now: datetime, losses: Losses) -> int:
    """Project the calls of a batch; return how many rows changed."""
    following = Following.objects.select_for_update().get()  # one process at a time
    known, plain, others = _changed(batch)
    if not (plain or others):
        return 0
    lasts: list[Any] = []
    if known:
        of_known = CallSummary.objects.filter(call__in=known).order_by()
        lasts += of_known.values_list("last", flat=True)
        run(f"DELETE FROM audit_call_mark WHERE call IN {ids_of()}", as_json(known))  # noqa: S608
    written = _write_plain(plain)
    projections = _read_others(others, now, losses)
    CallSummary.objects.bulk_create(
        map(_row, projections),
        update_conflicts=True,
        unique_fields=["call"],
        update_fields=list(_COLUMNS[1:]),
    )
    CallMark.objects.bulk_create(mark for each in projections for mark in _marks(each))
    written += [(each.call, each.tenant, each.last) for each in projections]
    lasts += [last for _, _, last in written]
    counting.note(map(id_text, lasts), following, now)
    if written and not batch.late:
        _tell(written, following.changes + 1)
    return len(written)


def _changed(batch: CallBatch) -> tuple[list[str], list[str], dict[str, int]]:
    """Return the calls whose entries are more than when they were projected: those that have a row, those
    that asked nothing, and the others with the number of their entries."""
    rows = fetch(
        "SELECT e.call, COUNT(*), SUM(CASE WHEN "  # noqa: S608 - constants
        f"{_PLAIN} THEN 0 ELSE 1 END), MAX(c.entries) FROM audit_entry e "
        f"LEFT JOIN audit_call c ON c.call = e.call WHERE e.call IN {ids_of()} GROUP BY e.call",
        as_json(batch.calls),
    )
    changed = [(id_text(row[0]), *row[1:]) for row in rows if row[1] != row[3] or batch.again]
    known = [call for call, _, _, entries in changed if entries is not None]
    plain = [call for call, _, asking, _ in changed if not asking]
    return known, plain, {call: count for call, count, asking, _ in changed if asking}


def _write_plain(calls: Sequence[str]) -> list[tuple[Any, Any, Any]]:
    """Project calls that consist of rounds without questions; return them with their tenants and last entries.

    As `projection.project` does. That they asked nothing is checked once more in the same statement:
    an entry may have been committed meanwhile.
    """
    if not calls:
        return []
    statement = (
        f"INSERT INTO audit_call ({', '.join(_COLUMNS)}) "  # noqa: S608 - constants
        "SELECT call, tenant, last, at, first_at, target, method, actor_kind, actor_id, "
        "COALESCE(NULLIF(actor_label, ''), NULLIF(actor_id, ''), actor_kind), token_id, "
        "client_name, delivery, NULLIF(trace_id, ''), "
        f"CASE WHEN action = '{ROUND_STARTED}' THEN 'unknown' ELSE outcome END, "
        f"CASE WHEN is_final AND outcome <> '{COMPLETE}' THEN {_true()} ELSE {_false()} END, "
        f"SUBSTR(reason, 1, {REASON_LENGTH}), duration, NULL, '', entries, 0, 0, NULL FROM ("
        "SELECT e.*, id AS last, "
        f"({_FINAL}) AS is_final, "
        f"ROW_NUMBER() OVER (PARTITION BY call ORDER BY ({_FINAL}) DESC, round DESC, "
        f"(action = '{ROUND_FINISHED}') DESC, id DESC) AS place, "
        "COUNT(*) OVER (PARTITION BY call) AS entries, "
        "MIN(at) OVER (PARTITION BY call) AS first_at, "
        f"CAST(SUM(duration_us) OVER (PARTITION BY call) AS bigint) AS duration, "
        f"MIN(CASE WHEN {_PLAIN} THEN 1 ELSE 0 END) OVER (PARTITION BY call) AS is_plain "
        f"FROM audit_entry e WHERE call IN {ids_of()}) AS found "
        f"WHERE place = 1 AND is_plain = 1 "
        f"ON CONFLICT (call) DO UPDATE SET {_REPLACED} RETURNING call, tenant, last, state, reason <> ''"
    )
    rows = fetch(statement, as_json(calls))
    marked = [id_text(row[0]) for row in rows if row[3] != COMPLETE or row[4]]
    if marked:
        for mark, condition in (
            ("state", f"state <> '{COMPLETE}'"),
            (f"'{REASON}'", "reason <> ''"),
        ):
            run(
                "INSERT INTO audit_call_mark (mark, tenant, last, call) "  # noqa: S608 - constants
                f"SELECT {mark}, tenant, last, call FROM audit_call WHERE call IN {ids_of()} "
                f"AND {condition}",
                as_json(marked),
            )
    return [row[:3] for row in rows]


def _tell(written: Iterable[tuple[Any, Any, Any]], number: int) -> None:
    """Note which calls changed, for live lists."""
    by_tenant: dict[str, list[str]] = defaultdict(list)
    for call, tenant, _ in written:
        by_tenant["" if tenant is None else id_text(tenant)].append(id_text(call))
    ChangedCalls.objects.create(number=number, calls=orjson.dumps(by_tenant).decode())
    ChangedCalls.objects.filter(number__lte=number - KEPT_CHANGES).delete()
    Following.objects.update(changes=number)


def _read_others(calls: Mapping[str, int], now: datetime, losses: Losses) -> list[Projection]:
    """Project calls that asked, or were refused something, given with the number of their entries."""
    entries: dict[UUID, list[EntryView]] = defaultdict(list)
    few = [call for call, count in calls.items() if count <= MOST_ENTRIES]
    if few:
        for each in Entry.objects.filter(call__in=few).order_by("id"):
            assert each.call is not None
            entries[each.call].append(view(each))
    made = [project(of_call, now, losses) for of_call in entries.values()]
    for call, count in calls.items():
        if count > MOST_ENTRIES:
            one = project([view(each) for each in part_of_call(UUID(call))], now, losses)
            made.append(one and one._replace(entries=count))
    return [each for each in made if each is not None]


def _row(one: Projection) -> CallSummary:
    shared = {name: getattr(one, name) for name in _COLUMNS if name != "details"}
    took = Counter(map(bucket_of, one.took_ms))
    details = {"endings": one.endings, "answers": one.answers, "took": took}
    return CallSummary(**shared, details=details)


def _marks(one: Projection) -> Iterable[CallMark]:
    marks = {ANSWERED + outcome for outcome, count in one.answers.items() if count > 0}
    if one.asked:
        marks.add(ASKED)
    if one.refused:
        marks.add(REFUSED)
    if one.reason:
        marks.add(REASON)
    if one.state != COMPLETE:
        marks.add(one.state)
    for mark in sorted(marks):
        yield CallMark(mark=mark, tenant=one.tenant, last=one.last, call=one.call)


def _true() -> str:
    return "1" if vendor() == SQLITE else "true"


def _false() -> str:
    return "0" if vendor() == SQLITE else "false"
