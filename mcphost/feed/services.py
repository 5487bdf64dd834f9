"""Telling every process what changed."""

from uuid import UUID, uuid4

from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.utils import timezone

from mcphost.feed.loop import loop
from mcphost.feed.models import Change, Counter

_NEXT = (
    "INSERT INTO feed_counter (id, value, epoch) VALUES (1, 1, %s) "
    "ON CONFLICT (id) DO UPDATE SET value = feed_counter.value + 1 RETURNING value"
)


def announce(what: str, *, tenant: UUID | None = None, object_id: str = "") -> int:
    """Write one change in the caller's transaction, and return its number.

    Every process hears of it after the commit; this one at once, in the committing thread. Call it
    last in the transaction: from here to the commit all other announcements wait, which is what
    makes the order of numbers the order of commits.

    Raises TransactionManagementError outside `transaction.atomic`.
    """
    connection = connections[DEFAULT_DB_ALIAS]
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError(
            f"the change {what!r} must be announced inside the transaction that makes it"
        )
    epoch = Counter._meta.get_field("epoch").get_db_prep_save(uuid4(), connection)
    with connection.cursor() as cursor:
        cursor.execute(_NEXT, [epoch])
        seq: int = cursor.fetchone()[0]
    Change.objects.create(seq=seq, tenant=tenant, what=what, object_id=object_id, at=timezone.now())
    transaction.on_commit(loop.poll, robust=True)
    return seq
