"""Rebuild the rows of some calls from their entries, and mark their time for recounting, in one
transaction.

Calls that asked nothing and have ended are projected by one statement of SQL, all others in Python. Doing it again
changes nothing, so it does not matter which entries have been seen before.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import orjson
from django.db import transaction

from mcphost.audit.entries import EntryView, view
from mcphost.audit.models import (
    CallMark,
    CallSummary,
    ChangedCalls,
    Entry,
    Following,
    QuestionSummary,
)
from mcphost.audit.open_calls import Losses
from mcphost.audit.records import (
    GOES_ON,
    INPUT_REQUIRED,
    ROUND_FINISHED,
    ROUND_STARTED,
)
from mcphost.audit.selectors import MAX_ENTRIES, part_of_call
from mcphost.audit.summaries import counting
from mcphost.audit.summaries.bulk_sql import (
    SQLITE,
    as_json,
    fetch,
    id_text,
    ids_of,
    run,
    vendor,
)
from mcphost.audit.summaries.histograms import bucket_of
from mcphost.audit.summaries.projection import (
    COMPLETE,
    REASON_LENGTH,
    REPLACED,
    Projection,
    project,
    question_rows,
)

AT_ONCE: Final = 1_000
"""How many calls are projected in one transaction: on SQLite it keeps others from writing."""
KEPT_CHANGES: Final = 300
"""Of how many transactions it is known which calls they changed. A live list that has seen fewer is loaded again."""
WITH_QUESTIONS: Final = "asked"
REFUSED: Final = "refused"
REASON: Final = "reason"
ERROR: Final = "error"
"""Marks of calls that asked, that were refused something, that have a reason (of an error, say), and that failed. An
outcome of answers is a mark too, with ANSWERED before it, and so is a state other than `complete`."""
ANSWERED: Final = "answer:"

_PLAIN: Final = (
    f"action IN ('{ROUND_STARTED}', '{ROUND_FINISHED}') AND outcome <> '{INPUT_REQUIRED}'"
)
_FINAL: Final = f"action = '{ROUND_FINISHED}' AND outcome NOT IN ('" + "', '".join(GOES_ON) + "')"
_COLUMNS: Final = (
    "call", "tenant", "last", "at", "first_at", "target", "method", "actor_kind", "actor_id",
    "caller", "token_id", "client_name", "delivery", "trace_id", "state", "is_error", "reason",
    "duration_us", "waited_us", "expires_at", "sealed_by", "entries", "asked", "refused", "details",
)  # fmt: skip
_REPLACED: Final = ", ".join(f"{column} = excluded.{column}" for column in _COLUMNS[1:])


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
    before = {
        id_text(call): last for call, last in _select("call, last", "audit_call", batch.calls)
    }
    ended = _write_ended(batch)
    changed = _find_changed(batch, {id_text(call) for call, *_ in ended})
    projections = _project_calls(changed, now, losses)
    CallSummary.objects.bulk_create(
        map(_row, projections),
        update_conflicts=True,
        unique_fields=["call"],
        update_fields=list(_COLUMNS[1:]),
    )
    written = [row[:3] for row in ended]
    written += [(projection.call, projection.tenant, projection.last) for projection in projections]
    if not written:
        return 0
    replaced = [text for call, *_ in written if (text := id_text(call)) in before]
    if replaced:
        run(f"DELETE FROM audit_call_mark WHERE call IN {ids_of()}", as_json(replaced))  # noqa: S608
    _mark_ended([id_text(call) for call, *_, is_marked in ended if is_marked])
    CallMark.objects.bulk_create(mark for projection in projections for mark in _marks(projection))
    _write_questions(projections)
    lasts = [before[call] for call in replaced] + [last for _, _, last in written]
    counting.note(map(id_text, lasts), following, now)
    if not batch.late:
        _note_changes(written, following.changes + 1)
    return len(written)


def _select(columns: str, table: str, calls: Collection[str], tail: str = "") -> list[Any]:
    statement = f"SELECT {columns} FROM {table} WHERE call IN {ids_of()} {tail}"  # noqa: S608
    return fetch(statement, as_json(calls))


def _write_ended(batch: CallBatch) -> list[tuple[Any, ...]]:
    """Project calls of one round that asked nothing, most of them; return them with their tenants and last entries, and
    whether they have a mark.

    As `projection.project` does, which projects all others.
    """
    last = "MAX(CASE WHEN {} THEN id END)"
    if vendor() != SQLITE:  # PostgreSQL has no greatest UUID
        last = "CAST(MAX(CASE WHEN {} THEN id::text END) AS uuid)"
    changed = "" if batch.again else "WHERE audit_call.entries <> excluded.entries "
    return fetch(
        f"INSERT INTO audit_call ({', '.join(_COLUMNS)}) "  # noqa: S608 - constants
        "SELECT e.call, tenant, id, at, first_at, target, method, actor_kind, actor_id, "
        "COALESCE(NULLIF(actor_label, ''), NULLIF(actor_id, ''), actor_kind), token_id, "
        f"client_name, delivery, NULLIF(trace_id, ''), outcome, outcome <> '{COMPLETE}', "
        f"SUBSTR(reason, 1, {REASON_LENGTH}), duration, NULL, NULL, '', entries, 0, 0, NULL FROM ("
        f"SELECT call, {last.format(_FINAL)} AS last, COUNT(*) AS entries, "
        "MIN(at) AS first_at, CAST(SUM(duration_us) AS bigint) AS duration "
        f"FROM audit_entry WHERE call IN {ids_of()} GROUP BY call "
        f"HAVING SUM(CASE WHEN {_PLAIN} THEN 0 ELSE 1 END) = 0 "
        f"AND SUM(CASE WHEN {_FINAL} THEN 1 ELSE 0 END) = 1 "
        f"AND SUM(CASE WHEN action = '{ROUND_FINISHED}' THEN 1 ELSE 0 END) = 1"
        ") AS ended JOIN audit_entry e ON e.id = ended.last WHERE true "
        f"ON CONFLICT (call) DO UPDATE SET {_REPLACED} {changed}"
        f"RETURNING call, tenant, last, state <> '{COMPLETE}' OR reason <> ''",
        as_json(batch.calls),
    )


def _find_changed(batch: CallBatch, ended: Collection[str]) -> dict[str, int]:
    """The calls, beside those that ended, that have other entries than when they were projected, with the number
    of their entries."""
    rest = [call for call in batch.calls if call not in ended]
    if not rest:
        return {}
    counts = _select("call, COUNT(*)", "audit_entry", rest, "GROUP BY call")
    projected = dict(_select("call, entries", "audit_call", rest))
    return {
        id_text(call): count
        for call, count in counts
        if batch.again or projected.get(call) != count
    }


def _mark_ended(calls: Collection[str]) -> None:
    """Mark calls that asked nothing, by their state and reason."""
    if not calls:
        return
    conditions = {
        "state": f"state <> '{COMPLETE}'",
        f"'{REASON}'": "reason <> ''",
        f"'{ERROR}'": "is_error",
    }
    for mark, condition in conditions.items():
        run(
            "INSERT INTO audit_call_mark (mark, tenant, last, call) "  # noqa: S608 - constants
            f"SELECT {mark}, tenant, last, call FROM audit_call WHERE call IN {ids_of()} "
            f"AND {condition}",
            as_json(calls),
        )


def _note_changes(written: Iterable[tuple[Any, Any, Any]], number: int) -> None:
    """Note which calls changed, for live lists."""
    by_tenant: dict[str, list[str]] = defaultdict(list)
    for call, tenant, _ in written:
        by_tenant["" if tenant is None else id_text(tenant)].append(id_text(call))
    ChangedCalls.objects.create(number=number, calls=orjson.dumps(by_tenant).decode())
    ChangedCalls.objects.filter(number__lte=number - KEPT_CHANGES).delete()
    Following.objects.update(changes=number)


def _project_calls(calls: Mapping[str, int], now: datetime, losses: Losses) -> list[Projection]:
    """Project calls in Python, given with the number of their entries."""
    entries: dict[UUID, list[EntryView]] = defaultdict(list)
    few = [call for call, count in calls.items() if count <= MAX_ENTRIES]
    if few:
        for row in Entry.objects.filter(call__in=few).order_by("id"):
            assert row.call is not None
            entries[row.call].append(view(row))
    made = [project(of_call, now, losses) for of_call in entries.values()]
    for call, count in calls.items():
        if count > MAX_ENTRIES:
            projection = project([view(row) for row in part_of_call(UUID(call))], now, losses)
            made.append(projection and projection._replace(entries=count))
    return [projection for projection in made if projection is not None]


def _row(projection: Projection) -> CallSummary:
    shared = {name: getattr(projection, name) for name in _COLUMNS if name != "details"}
    took = Counter(map(bucket_of, projection.took_ms))
    details = {"endings": projection.endings, "answers": projection.answers, "took": took}
    return CallSummary(**shared, details=details)


def _write_questions(projections: Iterable[Projection]) -> None:
    """Write the rows of the questions of these calls; delete those of questions that another run asked again.

    Of a call with very many entries only some are read: what else it asked keeps its rows.
    """
    with_questions = [projection for projection in projections if projection.questions]
    if not with_questions:
        return
    rows = [
        row
        for projection in with_questions
        for row in question_rows(projection.questions, projection.last)
    ]
    whole = [projection.call for projection in with_questions if projection.entries <= MAX_ENTRIES]
    QuestionSummary.objects.filter(call__in=whole).exclude(id__in=[row.id for row in rows]).delete()
    QuestionSummary.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["id"], update_fields=REPLACED
    )


def _marks(projection: Projection) -> Iterable[CallMark]:
    marks = {ANSWERED + outcome for outcome, count in projection.answers.items() if count > 0}
    if projection.asked:
        marks.add(WITH_QUESTIONS)
    if projection.refused:
        marks.add(REFUSED)
    if projection.reason:
        marks.add(REASON)
    if projection.is_error:
        marks.add(ERROR)
    if projection.state != COMPLETE:
        marks.add(projection.state)
    for mark in sorted(marks):
        yield CallMark(
            mark=mark, tenant=projection.tenant, last=projection.last, call=projection.call
        )
