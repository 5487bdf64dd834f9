"""Make the rows of roll-ups: of a bucket's calls, or of the rows of shorter buckets.

Who writes rows of calls marks their buckets as due (`RollUpDue`) in the same transaction. Soon after, `fold` makes the rows of a due
bucket again, without a lock, and writes them if neither its calls nor any roll-up have changed meanwhile. When a minute,
an hour or a day is over, its rows are made of those of shorter buckets. A call that changes later makes
its bucket due, and so each longer one that is made of it.

Trials are no traffic: they add their names, with sums of zero.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

import orjson
from django.db import transaction

from mcphost.audit.models import CallSummary, Following, RollUp, RollUpDue
from mcphost.audit.summaries.bulk_sql import (
    SQLITE,
    as_json,
    fetch,
    rows_of,
    run,
    stored_time_text,
    time_of,
    uuid_of,
    vendor,
)
from mcphost.audit.summaries.figures import CallSums
from mcphost.audit.summaries.histograms import bucket_of
from mcphost.audit.summaries.rollups import (
    DIMENSIONS,
    FREE,
    MAX_NAMES,
    PLATFORM,
    REST,
    SUMMED,
    Bucket,
    By,
    NamedRow,
    Resolution,
    is_kept,
    is_open,
    sums_of,
)
from mcphost.audit.timeline import DECLINED
from mcphost.runtime.call import Delivery, PrincipalKind

MAX_NAME: Final = 1000
"""In bytes of UTF-8. Longer ones are counted with the rest: PostgreSQL cannot index two of them."""
CLOSED_AFTER: Final = timedelta(seconds=5)
"""How long after its end a minute is closed, if all entries until then have been seen."""
CLOSED_AT_LATEST: Final = timedelta(minutes=10)
"""How long after its end a minute is closed, also if the process that follows is behind."""
PARTS_KEPT: Final = 5
"""For how many minutes after a minute was closed its parts are kept: pages that began before read them."""
READ: Final = "resources/read"

_COLUMNS: Final = {
    "tenant": "uuid",
    "dimension": "smallint",
    "resolution": "smallint",
    "bucket": "bigint",
    "name": "text",
    "client": "text",
    "calls": "bigint",
    "errors": "bigint",
    "declined": "bigint",
    "asked": "bigint",
    "last_at": "timestamptz",
    "latency": "text",
    "answering": "text",
    "endings": "text",
}
_DUE: Final = {"resolution": "smallint", "bucket": "bigint"}


class _Alike(NamedTuple):
    """What calls have in common that are counted together. `anonymous`: without a token; `is_read`: of a resource,
    whose URI is the target."""

    tenant: UUID | None
    target: str
    client: str
    caller: str
    actor: str
    anonymous: bool
    is_read: bool


class _Tally:
    """The rows of one bucket. Names that are counted first have rows of their own."""

    def __init__(self) -> None:
        self.rows: dict[NamedRow, CallSums] = {}
        self._names: Counter[tuple[UUID, int]] = Counter()

    def count(self, calls: _Alike, sums: CallSums) -> None:
        """Add the sums of calls that are alike to each row that they belong to."""
        self.add(NamedRow(PLATFORM, By.ALL), sums)
        tenant = calls.tenant
        if tenant is None:
            return
        target = FREE if calls.is_read else 0
        client = FREE if calls.anonymous else 0
        self.add(NamedRow(tenant, By.ALL), sums)
        self.add(NamedRow(tenant, By.TARGET + target, calls.target), sums)
        self.add(NamedRow(tenant, By.CLIENT + client, calls.client), sums)
        self.add(NamedRow(tenant, By.CALLER + client, calls.caller, calls.actor), sums)
        if sums.endings:
            by = By.TARGET_AND_CLIENT + max(target, client)
            self.add(NamedRow(tenant, by, calls.target, calls.client), sums)

    def add(self, row: NamedRow, sums: CallSums) -> None:
        """Add sums to a row, or to that of the rest if there is no place for its name."""
        if row not in self.rows and row.by % FREE != By.ALL and row.by < REST:
            if self._names[row[:2]] >= MAX_NAMES or _is_long(row.name) or _is_long(row.client):
                row = NamedRow(row.tenant, row.by % FREE + REST)
            else:
                self._names[row[:2]] += 1
        self.rows.setdefault(row, CallSums()).add(sums)


def note(lasts: Iterable[str], following: Following, now: datetime) -> None:
    """Let buckets be counted again whose calls changed, in the caller's transaction. `lasts` are the texts of the
    ids that determine the calls' states, those before the change too."""
    seconds = Resolution.PART.seconds
    parts = {int(last[:12], 16) // (1000 * seconds) for last in lasts}
    due = {_due_of(Bucket(Resolution.PART, part), following, now) for part in parts}
    _mark_due(bucket for bucket in due if bucket is not None)


def fold(now: datetime) -> bool:
    """Count one bucket that is due, or close one that is over; return whether there may be more."""
    following = Following.objects.get()
    parts = RollUpDue.objects.filter(resolution=Resolution.PART)
    bucket = parts.first() or _next_to_close(following, now) or _next_due(following)
    if isinstance(bucket, RollUpDue):
        _recount(bucket, following, now)
    elif bucket is not None:
        _close(bucket, following, now)
    return bucket is not None


def _due_of(part: Bucket, following: Following, now: datetime) -> Bucket | None:
    """The shortest bucket around a part that has, or is to have, rows; None if its time is no longer counted."""
    if is_open(part.within(Resolution.MINUTE), following):
        return part
    for resolution in (Resolution.MINUTE, Resolution.HOUR):
        bucket = part.within(resolution)
        # Of what is still to be made of them, shorter ones are kept for as long as that takes.
        if is_kept(bucket, now) or is_open(bucket.within(resolution.coarser), following):
            return bucket
    day = part.within(Resolution.DAY)
    return day if is_kept(day, now) else None


def _mark_due(buckets: Iterable[Bucket]) -> None:
    run(
        "INSERT INTO audit_rollup_due (resolution, bucket, mark) "  # noqa: S608 - constants
        f"SELECT r.resolution, r.bucket, 1 FROM {rows_of('r', _DUE)} WHERE true "
        "ON CONFLICT (resolution, bucket) DO UPDATE SET mark = audit_rollup_due.mark + 1",
        as_json({"resolution": bucket.resolution, "bucket": bucket.number} for bucket in buckets),
    )


def _next_due(following: Following) -> RollUpDue | None:
    """The shortest bucket that is due. While old entries are read, their hours and days become due again and again."""
    due = RollUpDue.objects.order_by("resolution", "bucket")
    if following.missing_until is not None:
        due = due.filter(resolution=Resolution.MINUTE)
    return due.first()


def _next_to_close(following: Following, now: datetime) -> Bucket | None:
    """The first minute, hour or day that is over, and of which no rows are made yet."""
    seen_until = now - CLOSED_AT_LATEST
    if following.current_at is not None:
        seen_until = min(now, max(following.current_at - CLOSED_AFTER, seen_until))
    until = int(seen_until.timestamp())
    for resolution in (Resolution.MINUTE, Resolution.HOUR, Resolution.DAY):
        opened: int = getattr(following, f"open_{resolution.name.lower()}")
        if opened < until // resolution.seconds:
            return Bucket(resolution, until // resolution.seconds - 1)
        until = opened * resolution.seconds
    return None


def _close(last: Bucket, following: Following, now: datetime) -> None:
    """Make the rows of the first bucket up to `last` in which there were calls."""
    name, finer = f"open_{last.resolution.name.lower()}", last.resolution.finer
    begins = getattr(following, name) * last.resolution.seconds
    rows = RollUp.objects.filter(tenant=PLATFORM, dimension=By.ALL, resolution=finer)
    counted = rows.filter(
        bucket__gte=begins // finer.seconds, bucket__lt=last.ends // finer.seconds
    )
    number = counted.order_by("bucket").values_list("bucket", flat=True).first()
    if number is not None:
        last = Bucket(finer, number).within(last.resolution)
    tally = _Tally() if number is None else _tally_of(last, now, has_parts=True)
    with transaction.atomic():
        if _is_current(following):
            _write(last, tally)
            if last.resolution is Resolution.MINUTE:
                kept = Bucket(Resolution.MINUTE, last.number - PARTS_KEPT).within(Resolution.PART)
                RollUp.objects.filter(
                    dimension__in=DIMENSIONS, resolution=Resolution.PART, bucket__lt=kept.number
                ).delete()
            _note_fold(following, now, **{name: last.number + 1})


def _recount(due: RollUpDue, following: Following, now: datetime) -> None:
    """Make the rows of a bucket again, and let the longer one around it be made again."""
    bucket = Bucket(Resolution(due.resolution), due.bucket)
    is_part = bucket.resolution is Resolution.PART
    counts = not is_part or is_open(bucket.within(Resolution.MINUTE), following)
    tally = _tally_of(bucket, now) if counts else None
    with transaction.atomic():
        if _is_current(following):
            if RollUpDue.objects.filter(pk=due.pk, mark=due.mark).delete()[0] and tally is not None:
                _write(bucket, tally)
            if bucket.resolution is not Resolution.DAY:
                longer = bucket.within(bucket.resolution.coarser)
                if not is_open(longer, following):
                    _mark_due([longer])
            _note_fold(following, now)


def _tally_of(bucket: Bucket, now: datetime, *, has_parts: bool = False) -> _Tally:
    """The rows of a bucket: from those of the shorter ones in it, if all of these have some."""
    if bucket.resolution > Resolution.MINUTE:
        has_parts = is_kept(bucket.within(bucket.resolution.finer), now)
    return _of_shorter(bucket) if has_parts else _of_calls(bucket)


def _is_current(following: Following) -> bool:
    """Lock; return whether no roll-up has been written since `following` was read."""
    return Following.objects.select_for_update().get().folds == following.folds


def _note_fold(following: Following, now: datetime, **changes: int) -> None:
    Following.objects.update(folds=following.folds + 1, folded_at=now, **changes)


def _write(bucket: Bucket, tally: _Tally) -> None:
    """Replace the rows of a bucket."""
    at = {"resolution": bucket.resolution, "bucket": bucket.number}
    RollUp.objects.filter(dimension__in=DIMENSIONS, **at).delete()
    run(
        f"INSERT INTO audit_rollup ({', '.join(_COLUMNS)}) "  # noqa: S608 - constants
        f"SELECT {', '.join(f'r.{column}' for column in _COLUMNS)} FROM {rows_of('r', _COLUMNS)}",
        as_json({**_columns(row, sums), **at} for row, sums in tally.rows.items()),
    )


def _columns(row: NamedRow, sums: CallSums) -> Mapping[str, Any]:
    return {
        "tenant": row.tenant.hex,
        "dimension": row.by,
        "name": row.name,
        "client": row.client,
        "calls": sums.calls,
        "errors": sums.errors,
        "declined": sums.declined,
        "asked": sums.input_requests,
        "last_at": stored_time_text(sums.last_at),
        "latency": _text(sums.latency),
        "answering": _text(sums.answering),
        "endings": _text(sums.endings),
    }


def _of_shorter(bucket: Bucket) -> _Tally:
    """The rows of a bucket from those of the shorter ones in it, the names with the most calls first."""
    tally, finer = _Tally(), bucket.resolution.finer
    first, end = bucket.begins // finer.seconds, bucket.ends // finer.seconds
    rows = RollUp.objects.filter(
        dimension__in=DIMENSIONS, resolution=finer, bucket__in=range(first, end)
    )
    named = rows.order_by("-calls").values_list("tenant", "dimension", "name", "client", *SUMMED)
    for tenant, by, name, client, *columns in named.iterator():
        tally.add(NamedRow(tenant, by, name, client), sums_of(columns))
    return tally


def _of_calls(bucket: Bucket) -> _Tally:
    """The rows of a bucket from its calls, the names with the most calls first."""
    tally = _Tally()
    first, end = bucket.ids
    is_trial = f"delivery = '{Delivery.PLAYGROUND}'"
    groups = fetch(
        f"SELECT tenant, target, client_name, caller, actor_id, "  # noqa: S608 - constants
        f"actor_kind = '{PrincipalKind.ANONYMOUS}' AS anonymous, method = '{READ}' AS is_read, "
        f"is_error, {is_trial} AS is_trial, COUNT(*) AS calls, MAX(at), {_joined()} "
        "FROM audit_call WHERE last >= %s AND last < %s AND details IS NULL "
        "GROUP BY tenant, target, client_name, caller, actor_id, anonymous, is_read, is_error, is_trial "
        "ORDER BY calls DESC",
        first.hex,
        end.hex,
    )
    for tenant, *alike, is_error, trial, count, last_at, durations in groups:
        calls = _Alike(None if tenant is None else uuid_of(tenant), *alike)
        took = Counter(
            bucket_of(int(duration)) for duration in (durations or "").split(",") if duration
        )
        sums = CallSums(count, count if is_error else 0, last_at=time_of(last_at), latency=took)
        tally.count(calls, CallSums() if trial else sums)
    asking = CallSummary.objects.filter(last__gte=first, last__lt=end, details__isnull=False)
    for row in asking.iterator():
        tally.count(_alike(row), sums_of_call(row))
    return tally


def _joined() -> str:
    """The SQL of the durations of a group as one text."""
    if vendor() == SQLITE:
        return "group_concat(duration_us)"
    return "string_agg(duration_us::text, ',')"


def _alike(row: CallSummary) -> _Alike:
    names = row.target, row.client_name, row.caller, row.actor_id
    return _Alike(row.tenant, *names, row.actor_kind == PrincipalKind.ANONYMOUS, row.method == READ)


def sums_of_call(row: CallSummary) -> CallSums:
    """What one call adds to each of its rows."""
    if row.delivery == Delivery.PLAYGROUND:
        return CallSums()
    details: Mapping[str, Any] = row.details or {}
    return CallSums(
        calls=1,
        errors=int(row.is_error),
        declined=int(row.state == DECLINED),
        input_requests=row.asked,
        last_at=row.at,
        latency={} if row.duration_us is None else {bucket_of(row.duration_us): 1},
        answering={int(key): count for key, count in details.get("took", {}).items()},
        endings=dict(details.get("endings", {})),
    )


def _is_long(name: str) -> bool:
    return 4 * len(name) > MAX_NAME and len(name.encode()) > MAX_NAME


def _text(counts: Mapping[int, int] | Mapping[str, int]) -> str:
    return orjson.dumps(counts, option=orjson.OPT_NON_STR_KEYS).decode()
