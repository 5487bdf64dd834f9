"""Fill a record: `python -m bench.record ENTRIES`, over `MCPHOST_HOME` or `DATABASE_URL`, with its summaries.

The calls are spread over the last thirty days, over some tenants, tools, clients and callers: most are
plain, some fail, some ask. Between them are actions of users, of which some are rare, and refusals. Rows are written directly, as the server would write them, without
payloads. Only the first tenant's are made one by one and summarised as the server does it; the others have
copies with ids of their own. Not for production: nothing of it can be deleted again.
"""

import json
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final
from uuid import UUID, uuid4

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mcphost.settings")
django.setup()

from django.db import connection, transaction  # noqa: E402 - what follows needs django.setup()
from django.db.models import AutoField, Model  # noqa: E402
from django.utils import timezone  # noqa: E402

from mcphost.audit.models import CallMark, CallSummary, Entry, Following, QuestionSummary, RollUp  # noqa: E402
from mcphost.audit.summaries import changed_calls, counting, rollups  # noqa: E402
from mcphost.audit.summaries.follower import Follower  # noqa: E402
from mcphost.audit.writer.rows import ENTRY_COLUMNS  # noqa: E402
from mcphost.tenants.models import Tenant  # noqa: E402

BATCH: Final = 5_000
SPAN: Final = timedelta(days=30)
TENANTS: Final = 20
TOOLS: Final = 40
CLIENTS: Final = ("claude-code", "vscode", "cursor", "inspector", "python", "curl")
CALLERS: Final = 60
ERRORS: Final = ("the warehouse did not answer", "no such order", "the quota is used up")
ENTRIES_PER_CALL: Final = 1.5
ACTIONS: Final = (
    "token.issued",
    "token.revoked",
    "payload.viewed",
    "tool.updated",
    "tool.published",
)
"""What users do often. One of a thousand actions is RARE."""
RARE: Final = "salt.destroyed"
IDS: Final = ("id", "call", "http_request_id", "last", "answer")
COPIED: Final[tuple[type[Model], ...]] = (Entry, CallSummary, CallMark, QuestionSummary, RollUp)


def fill(entries: int) -> None:
    """Write about so many entries, and their summaries."""
    tenants = [
        Tenant(id=uuid4(), slug=f"crowd-{number}", title=f"Crowd {number}")
        for number in range(TENANTS)
    ]
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA synchronous = OFF")
            cursor.execute("PRAGMA cache_size = -1000000")
    first, *other_tenants = [tenant.id for tenant in Tenant.objects.bulk_create(tenants)]
    _print_progress(f"{_fill_one(first, entries // TENANTS):,} entries of one tenant")
    _vacuum()
    _summarise()
    _print_progress("summarised")
    with _without_indexes():
        for model in COPIED:
            _keep_aside(model, first)
        for number, tenant in enumerate(other_tenants, 1):
            with transaction.atomic():
                for model in COPIED:
                    _copy(model, tenant, number)
            _print_progress(f"{number + 1} of {TENANTS} tenants")
    _print_progress("indexed")
    _count_all()
    _go_on_from_here()
    _vacuum()


def _vacuum() -> None:
    """As PostgreSQL itself does soon, where it is not turned off."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("VACUUM ANALYZE")


def _fill_one(tenant: UUID, entries: int) -> int:
    rng, now, written = random.Random(7), timezone.now(), 0
    calls = _calls(rng, tenant, now, SPAN / (entries / ENTRIES_PER_CALL))
    while batch := list(islice(calls, BATCH)):
        rows = [row for call in batch for row in call]
        with transaction.atomic(), connection.cursor() as cursor:
            _insert(cursor, rows)
        written += len(rows)
    return written


def _summarise() -> None:
    follower = Follower()
    Following.objects.all().delete()  # as at an upgrade: all is missing
    while follower.step().more:
        pass
    while counting.fold(timezone.now()):
        pass
    follower.release()


@contextmanager
def _without_indexes() -> Iterator[None]:
    """Drop the indexes that are not needed to keep rows apart, and make them again at the end: much faster."""
    tables = ", ".join(f"'{model._meta.db_table}'" for model in COPIED)
    query = (
        "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql NOT LIKE '%UNIQUE%' "
        f"AND tbl_name IN ({tables})"
    )
    if connection.vendor == "postgresql":
        query = (
            "SELECT indexname, indexdef FROM pg_indexes WHERE indexdef NOT LIKE '%UNIQUE%' "
            f"AND tablename IN ({tables})"
        )
    with connection.cursor() as cursor:
        cursor.execute(query)
        indexes = cursor.fetchall()
        for name, _ in indexes:
            cursor.execute(f'DROP INDEX "{name}"')
        yield
        for _, statement in indexes:
            cursor.execute(statement)


def _keep_aside(model: type[Model], tenant: UUID) -> None:
    """Keep the rows of the tenant, which are to be copied, in a table of this connection."""
    table = model._meta.db_table
    own = "%s::uuid" if connection.vendor == "postgresql" else "%s"
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE TEMPORARY TABLE own_{table} AS SELECT * FROM {table} WHERE tenant = {own}",
            [tenant.hex],
        )


def _copy(model: type[Model], tenant: UUID, number: int) -> None:
    """Copy the rows that were kept aside for another tenant."""
    table = model._meta.db_table
    columns = [field.column for field in model._meta.fields]
    if isinstance(model._meta.pk, AutoField):
        columns.remove("id")
    if connection.vendor == "postgresql":
        own, tail = "%s::uuid", "(left(replace({0}::text, '-', ''), 24) || %s)::uuid"
    else:
        own, tail = "%s", "(substr({0}, 1, 24) || %s)"
    values, parameters = [], []
    for column in columns:
        if column == "tenant":
            values.append(own)
            parameters.append(tenant.hex)
        elif column in IDS:
            values.append(tail.format(column))
            parameters.append(f"{number:08x}")
        else:
            values.append(f'"{column}"')
    names = ", ".join(f'"{column}"' for column in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f'INSERT INTO "{table}" ({names}) SELECT {", ".join(values)} FROM own_{table}',
            parameters,
        )


def _count_all() -> None:
    """The roll-ups of the whole platform count the first tenant only so far."""
    rows = list(RollUp.objects.filter(tenant=rollups.PLATFORM))
    for row in rows:
        row.calls *= TENANTS
        row.errors *= TENANTS
        row.asked *= TENANTS
        for name in ("latency", "answering", "endings"):
            counts = json.loads(getattr(row, name))
            setattr(row, name, json.dumps({key: n * TENANTS for key, n in counts.items()}))
    counted = ["calls", "errors", "asked", "latency", "answering", "endings"]
    RollUp.objects.bulk_update(rows, counted, batch_size=500)


def _go_on_from_here() -> None:
    """Let the server take all entries for summarised."""
    end = changed_calls.end()
    Following.objects.update(
        position=end.position,
        seen=end.snapshot,
        page=end.page,
        checked=end.position,
        checked_seen=end.snapshot,
    )


def _calls(
    rng: random.Random, tenant: UUID, now: datetime, step: timedelta
) -> Iterator[list[list[Any]]]:
    """Calls of the whole time, in its order."""
    at = now - SPAN
    while at < now:
        yield _call(rng, tenant, at)
        if rng.random() < 0.02:
            yield [_action(rng, at, tenant)]
        at += step * 2 * rng.random()


def _action(rng: random.Random, at: datetime, tenant: UUID) -> list[Any]:
    """An action of a user, or a request whose state was refused."""
    caller = rng.randrange(CALLERS)
    shared = {
        "tenant": tenant,
        "actor_kind": "user",
        "actor_id": str(caller),
        "actor_label": f"caller-{caller}",
        "target": f"tool-{rng.randrange(TOOLS)}",
    }
    if rng.random() < 0.2:
        return _row(rng, at, shared, "state.refused", "refused", reason="it has expired")
    action = RARE if rng.random() < 0.001 else rng.choice(ACTIONS)
    return _row(rng, at, shared, action, "")


def _call(rng: random.Random, tenant: UUID, at: datetime) -> list[list[Any]]:
    caller = int(rng.paretovariate(1)) % CALLERS
    shared = {
        "tenant": tenant,
        "call": _id(rng, at),
        "http_request_id": _id(rng, at),
        "round": 1,
        "actor_kind": "user",
        "actor_id": str(caller),
        "actor_label": f"caller-{caller}",
        "token_id": f"token-{caller}",
        "method": "tools/call",
        "target": f"tool-{int(rng.paretovariate(1)) % TOOLS}",
        "client_name": rng.choice(CLIENTS),
        "revision": "2026-07-28",
        "era": "modern",
        "delivery": "modern",
        "trace_id": f"{rng.getrandbits(128):032x}" if rng.random() < 0.1 else "",
    }
    took = int(rng.lognormvariate(8, 1.5))
    kind = rng.random()
    if kind < 0.70:
        return [_row(rng, at, shared, "round.finished", "complete", duration_us=took)]
    if kind < 0.93:
        failed = rng.random() < 0.2
        outcome, reason = ("tool_error", rng.choice(ERRORS)) if failed else ("complete", "")
        end = {"reason": reason, "duration_us": took}
        return [
            _row(rng, at, shared, "round.started", ""),
            _row(rng, at, shared, "round.finished", outcome, **end),
        ]
    return _asking(rng, at, shared, took)


def _asking(rng: random.Random, at: datetime, shared: dict[str, Any], took: int) -> list[list[Any]]:
    named = {"key": "confirm", "question": "digest", "method": "elicitation/create"}
    expires = (at + timedelta(minutes=30)).astimezone(UTC).isoformat()
    request_facts = {"asked": ["confirm"], "sealed_by": "bench", "expires_at": expires}
    rows = [
        _row(rng, at, shared, "round.started", ""),
        _row(rng, at, shared, "question.asked", "", facts=named),
        _row(
            rng,
            at,
            shared,
            "round.finished",
            "input_required",
            duration_us=took,
            facts=request_facts,
        ),
    ]
    if rng.random() < 0.3:
        return rows
    later, action = at + timedelta(seconds=rng.random() * 600), rng.choice(("accept", "decline"))
    answer_facts = {**named, "seconds": (later - at).total_seconds(), "sealed_by": "bench"}
    second = {**shared, "round": 2, "http_request_id": _id(rng, later)}
    return [
        *rows,
        _row(rng, later, second, "answer.received", action, facts=answer_facts),
        _row(rng, later, second, "round.started", ""),
        _row(rng, later, second, "round.finished", "complete", duration_us=took),
    ]


def _row(
    rng: random.Random, at: datetime, shared: dict[str, Any], action: str, outcome: str, **more: Any
) -> list[Any]:
    values = {**shared, "id": _id(rng, at), "at": at, "action": action, "outcome": outcome, **more}
    values["facts"] = json.dumps(values.get("facts", {}))
    return [values.get(name, _EMPTY.get(name, "")) for name in ENTRY_COLUMNS]


_EMPTY: Final[dict[str, Any]] = dict.fromkeys(
    (
        "tenant",
        "call",
        "http_request_id",
        "round",
        "duration_us",
        "bytes_in",
        "bytes_out",
        "commitment",
    )
)


def _id(rng: random.Random, at: datetime) -> UUID:
    milliseconds = int(at.timestamp() * 1000)
    return UUID(int=milliseconds << 80 | 0x7 << 76 | 1 << 63 | rng.getrandbits(62))


def _insert(cursor: Any, rows: Sequence[Sequence[Any]]) -> None:
    names = ", ".join(f'"{name}"' for name in ENTRY_COLUMNS)
    if connection.vendor == "postgresql":
        with cursor.copy(f"COPY audit_entry ({names}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        return
    places = ", ".join(["?"] * len(ENTRY_COLUMNS))
    plain = [[_sqlite(value) for value in row] for row in rows]
    insert = f"INSERT INTO audit_entry ({names}) VALUES ({places})"
    cursor.cursor.connection.executemany(insert, plain)


def _sqlite(value: Any) -> Any:
    if isinstance(value, UUID):
        return value.hex
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None).isoformat(" ")
    return value


_BEGUN: Final = time.monotonic()


def _print_progress(message: str) -> None:
    print(f"{time.monotonic() - _BEGUN:6.0f} s  {message}", flush=True)


if __name__ == "__main__":
    fill(int(sys.argv[1]))
