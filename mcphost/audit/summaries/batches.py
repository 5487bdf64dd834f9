"""Make the rows of some calls again from their entries, and note what that changes in roll-ups, in one transaction.

Calls that asked nothing are projected by one statement of SQL, all others in Python. Doing it again
changes nothing, so it does not matter which entries have been seen before.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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
from mcphost.audit.summaries import rollups
from mcphost.audit.summaries.figures import CallSums
from mcphost.audit.summaries.histograms import bucket_of
from mcphost.audit.summaries.projection import COMPLETE, REASON_LENGTH, Projection, project
from mcphost.audit.summaries.rollups import PLATFORM, AlikeCalls
from mcphost.audit.summaries.sets import (
    SQLITE,
    as_json,
    fetch,
    id_text,
    ids_of,
    run,
    uuid_of,
    vendor,
)
from mcphost.runtime.call import Delivery, PrincipalKind

AT_ONCE: Final = 1_000
"""How many calls are projected in one transaction: on SQLite it keeps others from writing."""
KEPT_CHANGES: Final = 300
"""Of how many transactions it is known which calls they changed. A live list that has seen fewer is loaded again."""
ASKED: Final = "asked"
REFUSED: Final = "refused"
REASON: Final = "reason"
READ: Final = "resources/read"
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


@dataclass(slots=True)
class _Deltas:
    """Sums to be added to roll-ups, by group."""

    groups: dict[AlikeCalls, CallSums] = field(default_factory=lambda: defaultdict(CallSums))

    def count(self, group: AlikeCalls, sums: CallSums, sign: int = 1) -> None:
        self.groups[group].add(sums, sign)

    def count_rows(self, rows: Iterable[CallSummary], sign: int = 1) -> None:
        for row in rows:
            self.count(_group(row), sums_of(row), sign)


@transaction.atomic
def write(batch: CallBatch, now: datetime, losses: Losses) -> int:
    """Project the calls of a batch; return how many rows changed."""
    following = Following.objects.select_for_update().get()  # one process at a time
    known, plain, others = _changed(batch)
    if not (plain or others):
        return 0
    deltas = _Deltas()
    if known:
        deltas.count_rows(CallSummary.objects.filter(call__in=known), -1)
        run(f"DELETE FROM audit_call_mark WHERE call IN {ids_of()}", as_json(known))  # noqa: S608
    written = _write_plain(plain)
    _add_plain(deltas, plain)
    projections = _read_others(others, now, losses)
    rows = [_row(each) for each in projections]
    CallSummary.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["call"], update_fields=list(_COLUMNS[1:])
    )
    CallMark.objects.bulk_create(mark for each in projections for mark in _marks(each))
    deltas.count_rows(rows)
    rollups.note(deltas.groups)
    written += [(each.call, each.tenant) for each in projections]
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


def _write_plain(calls: Sequence[str]) -> list[tuple[Any, Any]]:
    """Project calls that consist of rounds without questions; return them with their tenants.

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
        f"ON CONFLICT (call) DO UPDATE SET {_REPLACED} RETURNING call, tenant, state, reason <> ''"
    )
    rows = fetch(statement, as_json(calls))
    marked = [id_text(row[0]) for row in rows if row[2] != COMPLETE or row[3]]
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
    return [(call, tenant) for call, tenant, *_ in rows]


def _tell(written: Iterable[tuple[Any, Any]], number: int) -> None:
    """Note which calls changed, for live lists."""
    by_tenant: dict[str, list[str]] = defaultdict(list)
    for call, tenant in written:
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


def _add_plain(deltas: _Deltas, calls: Sequence[str]) -> None:
    """Add the rows of calls that asked nothing, those that are alike together."""
    if not calls:
        return
    minute, joined = (
        "CAST(FLOOR(EXTRACT(EPOCH FROM at) / 60) AS bigint)",
        "string_agg(duration_us::text, ',')",
    )
    if vendor() == SQLITE:
        minute, joined = "CAST(strftime('%%s', at) AS integer) / 60", "group_concat(duration_us)"
    groups = fetch(
        f"SELECT tenant, {minute} AS minute, target, client_name, caller, actor_id, "  # noqa: S608
        f"actor_kind = '{PrincipalKind.ANONYMOUS}' AS anonymous, method = '{READ}' AS is_read, is_error, "
        f"delivery = '{Delivery.PLAYGROUND}' AS is_trial, COUNT(*), MAX(at), {joined} "
        f"FROM audit_call WHERE call IN {ids_of()} AND details IS NULL "
        "GROUP BY tenant, minute, target, client_name, caller, actor_id, anonymous, is_read, is_error, is_trial",
        as_json(calls),
    )
    for tenant, *alike, failed, is_trial, count, last_at, durations in groups:
        group = AlikeCalls(PLATFORM if tenant is None else uuid_of(tenant), *alike)
        if is_trial:
            deltas.count(group, CallSums())  # no traffic; but its names are in roll-ups, for lists
            continue
        buckets = Counter(bucket_of(int(each)) for each in (durations or "").split(",") if each)
        sums = CallSums(
            calls=count,
            errors=count if failed else 0,
            last_at=rollups.time_of(last_at),
            latency=buckets,
        )
        deltas.count(group, sums)


def _group(row: CallSummary) -> AlikeCalls:
    minute = int(row.at.timestamp()) // 60
    names = row.target, row.client_name, row.caller, row.actor_id
    anonymous = row.actor_kind == PrincipalKind.ANONYMOUS
    return AlikeCalls(row.tenant or PLATFORM, minute, *names, anonymous, row.method == READ)


def sums_of(row: CallSummary) -> CallSums:
    if row.delivery == Delivery.PLAYGROUND:
        return CallSums()
    details: Mapping[str, Any] = row.details or {}
    latency = {} if row.duration_us is None else {bucket_of(row.duration_us): 1}
    return CallSums(
        calls=1,
        errors=int(row.is_error),
        asked=row.asked,
        last_at=row.at,
        latency=latency,
        answering={int(key): count for key, count in details.get("took", {}).items()},
        endings=dict(details.get("endings", {})),
    )


def _true() -> str:
    return "1" if vendor() == SQLITE else "true"


def _false() -> str:
    return "0" if vendor() == SQLITE else "false"
