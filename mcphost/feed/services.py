"""Announce changes to every process."""

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID, uuid4

from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.utils import timezone

from mcphost.feed.loop import loop
from mcphost.feed.models import Change, Counter

_NEXT = (
    "INSERT INTO feed_counter (id, value, epoch) VALUES (1, %s, %s) "
    "ON CONFLICT (id) DO UPDATE SET value = feed_counter.value + %s RETURNING value"
)


def announce(name: str, *, tenant: UUID | None = None, object_id: str = "") -> int:
    """Write one change in the caller's transaction, and return its number. `name` says what has changed.

    Every process is notified after the commit; this one at once, in the committing thread. Call it
    last in the transaction: from here to the commit all other announcements wait, so that the order
    of numbers is the order of commits.

    Raises TransactionManagementError outside `transaction.atomic`.
    """
    return announce_all(name, [(tenant, object_id)])


def announce_all(name: str, about: Sequence[tuple[UUID | None, str]]) -> int:
    """As `announce` for several changes of one name, each a tenant and an object id.

    Returns the last number.
    """
    connection = connections[DEFAULT_DB_ALIAS]
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError(
            f"the change {name!r} must be announced inside the transaction that makes it"
        )
    epoch = Counter._meta.get_field("epoch").get_db_prep_save(uuid4(), connection)
    with connection.cursor() as cursor:
        cursor.execute(_NEXT, [len(about), epoch, len(about)])
        last: int = cursor.fetchone()[0]
    now = timezone.now()
    Change.objects.bulk_create(
        Change(seq=seq, tenant=tenant, name=name, object_id=object_id, at=now)
        for seq, (tenant, object_id) in enumerate(about, last - len(about) + 1)
    )
    transaction.on_commit(loop.committed, robust=True)
    return last


ANNOUNCEMENTS: Final = "announce"
"""The name of the effect that ANNOUNCING belongs to."""
_ROWS: Final = (
    "(SELECT json_extract(value, '$.tenant') AS tenant, json_extract(value, '$.name') AS name, "
    "json_extract(value, '$.object_id') AS object_id FROM json_each(?)) AS r"
)
_POSTGRES_ROWS: Final = (
    "json_to_recordset(%s::json) AS r(tenant uuid, name text, object_id text, nonce text) "
    "WHERE r.nonce IN (SELECT nonce FROM held)"
)
_COUNT: Final = (
    "INSERT INTO feed_counter (id, value, epoch) SELECT 1, count(*), {epoch} FROM {rows} "
    "HAVING count(*) > 0 "
    "ON CONFLICT (id) DO UPDATE SET value = feed_counter.value + excluded.value"
)
_CHANGES: Final = (
    "INSERT INTO feed_change (seq, tenant, name, object_id, at) "
    "SELECT (SELECT value FROM {counter}) - count(*) OVER () + row_number() OVER (), "
    "r.tenant, r.name, r.object_id, {now} FROM {rows}"
)
ANNOUNCING: Final[Mapping[str, tuple[str, str]]] = {
    "sqlite": (
        _COUNT.format(rows=_ROWS + " WHERE true", epoch="lower(hex(randomblob(16)))"),
        _CHANGES.format(
            rows=_ROWS, counter="feed_counter", now="strftime('%Y-%m-%d %H:%M:%f', 'now')"
        ),
    ),
    "postgresql": (
        _COUNT.format(rows=_POSTGRES_ROWS, epoch="gen_random_uuid()") + " RETURNING value",
        _CHANGES.format(
            rows=_POSTGRES_ROWS, counter=f"{ANNOUNCEMENTS}0", now="statement_timestamp()"
        ),
    ),
}
"""As `announce_all`, in SQL: steps of an effect of the record writer, whose rows are JSON objects with
`tenant`, `name` and `object_id`, on PostgreSQL also `nonce`. Call `loop.announced` after the commit."""
