"""Add the figures of calls to roll-ups: per minute, hour and day, by target, client and caller.

Trials in the console are no traffic: they add their names, with sums of zero.

A row of a call that changes is taken away as it was and added as it is. These sums are noted in the
transaction that changes it (`RollUpChange`), and soon after added to roll-ups, those of many batches
together, since most of them belong to the same rows. So roll-ups with what is noted are sums over all rows
of calls of clients, exactly, for as long as their buckets are kept.

A bucket has a row for each of the first MOST_NAMES names of a dimension. Callers without a token choose the
name of their client freely, and every caller the URI that it reads. Such names have rows of their own
(FREE), so that they cannot take the places of others. All names without a row are counted together (REST).
An earlier release wrote no such rows: what it counted is taken away from another row of the same name, which is
then below zero. Only the sum of the rows of a name is its number.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from itertools import chain, product
from typing import Any, Final, NamedTuple
from uuid import UUID

import orjson
from django.db import transaction

from mcphost.audit.models import Following, RollUp, RollUpChange
from mcphost.audit.summaries.figures import CallSums
from mcphost.audit.summaries.sets import as_json, fetch, moment_text, rows_of, run, upsert, uuid_of

PLATFORM: Final = UUID(int=0)
MOST_NAMES: Final = 200
"""How many names a bucket of a tenant has at most: so many again that callers choose freely."""
LONGEST_NAME: Final = 1000
"""In bytes of UTF-8. Longer ones are counted with the rest: PostgreSQL cannot index two of them."""
PRUNED_AT_ONCE: Final = 500
FOLDED_AT_ONCE: Final = 100
FOLDED_ROWS: Final = 500
"""About how many rows one transaction of `fold` writes: on SQLite it keeps others from writing."""
NOTED_AT_ONCE: Final = 50
"""Most rows of a minute in one `RollUpChange`, each of which is added to roll-ups in one transaction."""


class By(IntEnum):
    """By what a row counts."""

    ALL = 0
    TARGET = 1
    CLIENT = 2
    CALLER = 3
    TARGET_AND_CLIENT = 4
    """Only calls that asked or were refused something."""

    @property
    def named(self) -> tuple[int, ...]:
        """The dimensions of the rows with names."""
        return (self,) if self is By.ALL else (self, self + FREE)

    @property
    def whole(self) -> tuple[int, ...]:
        """The dimensions of all rows: their sum is that of all calls."""
        return self.named if self is By.ALL else (*self.named, self + REST)


FREE: Final = 10
"""Added to a dimension: rows of the names that callers choose freely."""
REST: Final = 20
"""Added to a dimension: the row, without a name, of all the names without a place."""


class Resolution(IntEnum):
    """How long a bucket is."""

    MINUTE = 0
    HOUR = 1
    DAY = 2

    @property
    def seconds(self) -> int:
        return _SECONDS[self]

    def bucket(self, at: datetime) -> int:
        """Return the number of the bucket that contains a time."""
        return int(at.timestamp()) // _SECONDS[self]


_SECONDS: Final = {Resolution.MINUTE: 60, Resolution.HOUR: 3600, Resolution.DAY: 86_400}
KEPT: Final = {
    Resolution.MINUTE: timedelta(hours=25),
    Resolution.HOUR: timedelta(days=32),
    Resolution.DAY: timedelta(days=400),
}


class AlikeCalls(NamedTuple):
    """Calls of one minute that are alike. `anonymous`: without a token; `is_read`: of a resource, whose URI
    is the target."""

    tenant: UUID
    minute: int
    target: str
    client: str
    caller: str
    actor: str
    anonymous: bool
    is_read: bool


class RollUpKey(NamedTuple):
    """Which row. `by` is a `By`, or one with FREE or REST added. `client` is the second part of a name: the
    client of a target, the id of a caller."""

    tenant: UUID
    by: int
    resolution: int
    bucket: int
    name: str = ""
    client: str = ""


Deltas = Mapping[AlikeCalls, CallSums]

_TABLE: Final = RollUp._meta.db_table
_KEY: Final = {
    "tenant": "uuid",
    "dimension": "smallint",
    "resolution": "smallint",
    "bucket": "bigint",
    "name": "text",
    "client": "text",
}
_SUMS: Final = {
    "calls": "bigint",
    "errors": "bigint",
    "asked": "bigint",
    "last_at": "timestamptz",
    "latency": "text",
    "answering": "text",
    "endings": "text",
}
_BUCKET: Final = tuple(_KEY)[:4]


def note(deltas: Deltas) -> None:
    """Note sums for `fold`, in the caller's transaction."""
    noted = [
        (key.tenant.hex, key.by, key.bucket, key.name, key.client, *_figures(sums))
        for key, sums in _by_minute(deltas).items()
    ]
    parts = (noted[at : at + NOTED_AT_ONCE] for at in range(0, len(noted), NOTED_AT_ONCE))
    option = orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z
    RollUpChange.objects.bulk_create(
        RollUpChange(sums=orjson.dumps(part, option=option).decode()) for part in parts
    )


def fold(now: datetime) -> bool:
    """Add a portion of what was noted to all rows that it belongs to, and make the rows that are missing.

    Return whether there is more. Under the lock of `Following` it only writes, and nothing if another
    process has done so meanwhile.
    """
    if not RollUpChange.objects.exists():
        return False
    folds = Following.objects.values_list("folds", flat=True).get()
    changes, minutes = _portion()
    sums = _spread(minutes, now)
    rows = _rows(sums)
    filled = []
    for key, change in _named(sums, rows).items():
        total = rows.get(key) or CallSums()
        total.add(change)
        filled.append(_filled(key, total))
    with transaction.atomic():
        if Following.objects.select_for_update().get().folds != folds:
            return False
        run(upsert(_TABLE, {**_KEY, **_SUMS}, tuple(_KEY)), as_json(filled))
        RollUpChange.objects.filter(pk__in=changes).delete()
        Following.objects.update(folds=folds + 1, folded_at=now)
    return RollUpChange.objects.exists()


def counts_of(text: str) -> dict[str, int]:
    """Parse stored counts by name."""
    counts: dict[str, int] = orjson.loads(text)
    return counts


def time_of(stored: Any) -> datetime | None:
    """Return a time as a driver returned it."""
    if isinstance(stored, str):  # SQLite, and JSON
        return datetime.fromisoformat(stored).replace(tzinfo=UTC)
    return stored if stored is None else stored.astimezone(UTC)


def histogram_of(text: str) -> dict[int, int]:
    """Parse a stored histogram."""
    return _histogram(orjson.loads(text))


def prune(now: datetime) -> int:
    """Delete at most PRUNED_AT_ONCE rows that are older than their resolution is kept; return how many."""
    deleted = 0
    # Each is found by one index, the oldest first.
    for resolution, by in product(Resolution, chain.from_iterable(each.whole for each in By)):
        oldest = resolution.bucket(now - KEPT[resolution])
        old = RollUp.objects.filter(dimension=by, resolution=resolution, bucket__lt=oldest)
        ids = old.order_by("bucket").values_list("pk", flat=True)[: PRUNED_AT_ONCE - deleted]
        deleted += RollUp.objects.filter(pk__in=list(ids)).delete()[0]
        if deleted >= PRUNED_AT_ONCE:
            break
    return deleted


def _by_minute(deltas: Deltas) -> dict[RollUpKey, CallSums]:
    """Return the sums of each row of a minute."""
    found: dict[RollUpKey, CallSums] = defaultdict(CallSums)
    for group, sums in deltas.items():
        tenant, at = group.tenant, (Resolution.MINUTE, group.minute)
        found[RollUpKey(PLATFORM, By.ALL, *at)].add(sums)
        if tenant == PLATFORM:
            continue
        any_target = FREE if group.is_read else 0
        any_client = FREE if group.anonymous else 0
        found[RollUpKey(tenant, By.ALL, *at)].add(sums)
        found[RollUpKey(tenant, By.TARGET + any_target, *at, group.target)].add(sums)
        found[RollUpKey(tenant, By.CLIENT + any_client, *at, group.client)].add(sums)
        found[RollUpKey(tenant, By.CALLER + any_client, *at, group.caller, group.actor)].add(sums)
        if any(sums.endings.values()):
            by = By.TARGET_AND_CLIENT + max(any_target, any_client)
            found[RollUpKey(tenant, by, *at, group.target, group.client)].add(sums)
    return found


def _is_long(name: str) -> bool:
    return 4 * len(name) > LONGEST_NAME and len(name.encode()) > LONGEST_NAME


def _figures(sums: CallSums) -> tuple[Any, ...]:
    return (
        sums.calls,
        sums.errors,
        sums.asked,
        sums.last_at,
        sums.latency,
        sums.answering,
        sums.endings,
    )


def _portion() -> tuple[list[int], dict[RollUpKey, CallSums]]:
    """Return which changes are added next, and their sums for each row of a minute."""
    changes: list[int] = []
    found: dict[RollUpKey, CallSums] = defaultdict(CallSums)
    for change, text in RollUpChange.objects.values_list("pk", "sums")[:FOLDED_AT_ONCE]:
        changes.append(change)
        for key, sums in _noted(text):
            found[key].add(sums)
        if len(found) * len(Resolution) >= FOLDED_ROWS:
            break
    return changes, found


def _noted(text: str) -> Iterator[tuple[RollUpKey, CallSums]]:
    """Parse the sums of rows of a minute that were noted."""
    for tenant, by, minute, name, client, *figures in orjson.loads(text):
        calls, errors, asked, last_at, latency, answering, endings = figures
        key = RollUpKey(UUID(hex=tenant), by, Resolution.MINUTE, minute, name, client)
        if _is_long(name) or _is_long(client):  # here, since earlier releases noted them too
            key = _rest(key)
        counts = _histogram(latency), _histogram(answering), endings
        yield key, CallSums(calls, errors, asked, time_of(last_at), *counts)


def _spread(minutes: Mapping[RollUpKey, CallSums], now: datetime) -> dict[RollUpKey, CallSums]:
    """Return the sums of each row of each resolution that still counts."""
    found: dict[RollUpKey, CallSums] = {}
    finer, seconds = minutes, Resolution.MINUTE.seconds
    for resolution in Resolution:
        rows: dict[RollUpKey, CallSums] = defaultdict(CallSums)
        for (tenant, by, _, bucket, name, client), sums in finer.items():
            larger = bucket * seconds // resolution.seconds
            rows[RollUpKey(tenant, by, resolution, larger, name, client)].add(sums)
        oldest = resolution.bucket(now - KEPT[resolution])
        found.update((key, sums) for key, sums in rows.items() if key.bucket >= oldest)
        finer, seconds = rows, resolution.seconds
    return found


def _rows(keys: Iterable[RollUpKey]) -> dict[RollUpKey, CallSums]:
    """Return the rows that exist among these, and those of the rest beside them."""
    wanted = set(keys)
    wanted |= {_rest(key) for key in wanted if key.by != By.ALL}
    on = " AND ".join(f"u.{column} = k.{column}" for column in _KEY)
    columns = ", ".join(f"u.{column}" for column in (*_KEY, *_SUMS))
    found = fetch(
        f"SELECT {columns} FROM {rows_of('k', _KEY)} JOIN {_TABLE} u ON {on}",  # noqa: S608
        as_json(map(_key_json, wanted)),
    )
    return {RollUpKey(uuid_of(row[0]), *row[1:6]): sums_of(row[6:]) for row in found}


def sums_of(columns: Sequence[Any]) -> CallSums:
    """Return what a row contains, from its columns from `calls` on."""
    calls, errors, asked, last_at, latency, answering, endings = columns
    return CallSums(
        calls,
        errors,
        asked,
        time_of(last_at),
        histogram_of(latency),
        histogram_of(answering),
        counts_of(endings),
    )


def _named(
    sums: Mapping[RollUpKey, CallSums], rows: Mapping[RollUpKey, CallSums]
) -> Mapping[RollUpKey, CallSums]:
    """Count names for which a bucket has no more place with the rest."""
    fresh = {key[:4] for key in sums if key not in rows and key.by != By.ALL}
    places = _places(fresh) if fresh else {}
    found: dict[RollUpKey, CallSums] = defaultdict(CallSums)
    for key, change in sums.items():
        if key not in rows and key.by != By.ALL:
            if places[key[:4]] <= 0:
                key = _rest(key)  # noqa: PLW2901
            else:
                places[key[:4]] -= 1
        found[key].add(change)
    return found


def _rest(key: RollUpKey) -> RollUpKey:
    return key._replace(by=key.by % FREE + REST, name="", client="")


def _places(
    buckets: Collection[tuple[UUID, int, int, int]],
) -> dict[tuple[UUID, int, int, int], int]:
    """Return for how many more names each bucket has a place."""
    columns = {name: _KEY[name] for name in _BUCKET}
    on = " AND ".join(f"u.{column} = k.{column}" for column in columns)
    names = ", ".join(f"k.{column}" for column in columns)
    rows = fetch(
        f"SELECT {names}, COUNT(*) FROM {rows_of('k', columns)} JOIN {_TABLE} u ON {on} "  # noqa: S608
        f"GROUP BY {names}",
        as_json({**_key_json(RollUpKey(*each)), "name": ""} for each in buckets),
    )
    taken = {(uuid_of(row[0]), *row[1:4]): row[4] for row in rows}
    return {each: MOST_NAMES - taken.get(each, 0) for each in buckets}


def _key_json(key: RollUpKey) -> dict[str, Any]:
    return {**dict(zip(_KEY, key, strict=True)), "tenant": key.tenant.hex}


def _filled(key: RollUpKey, sums: CallSums) -> dict[str, Any]:
    return {
        **_key_json(key),
        "calls": sums.calls,
        "errors": sums.errors,
        "asked": sums.asked,
        "last_at": moment_text(sums.last_at),
        "latency": _text(sums.latency),
        "answering": _text(sums.answering),
        "endings": _text(sums.endings),
    }


def _histogram(counts: Mapping[str, int]) -> dict[int, int]:
    return {int(bucket): count for bucket, count in counts.items()}


def _text(counts: Mapping[int, int] | Mapping[str, int]) -> str:
    known = {str(name): count for name, count in counts.items() if count}
    return orjson.dumps(known).decode()
