"""Announce changes to every process."""

from collections.abc import Sequence
from uuid import UUID, uuid4

from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.utils import timezone

from mcphost.feed.loop import loop
from mcphost.feed.models import Change, Counter

_NEXT = (
    "INSERT INTO feed_counter (id, value, epoch) VALUES (1, %s, %s) "
    "ON CONFLICT (id) DO UPDATE SET value = feed_counter.value + %s RETURNING value"
)


def announce(what: str, *, tenant: UUID | None = None, object_id: str = "") -> int:
    """Write one change in the caller's transaction, and return its number.

    Every process is notified after the commit; this one at once, in the committing thread. Call it
    last in the transaction: from here to the commit all other announcements wait, so that the order
    of numbers is the order of commits.

    Raises TransactionManagementError outside `transaction.atomic`.
    """
    return announce_all(what, [(tenant, object_id)])


def announce_all(what: str, about: Sequence[tuple[UUID | None, str]]) -> int:
    """As `announce` for several changes of one kind, each a tenant and an object id.

    Returns the last number.
    """
    connection = connections[DEFAULT_DB_ALIAS]
    if not connection.in_atomic_block:
        raise transaction.TransactionManagementError(
            f"the change {what!r} must be announced inside the transaction that makes it"
        )
    epoch = Counter._meta.get_field("epoch").get_db_prep_save(uuid4(), connection)
    with connection.cursor() as cursor:
        cursor.execute(_NEXT, [len(about), epoch, len(about)])
        last: int = cursor.fetchone()[0]
    now = timezone.now()
    Change.objects.bulk_create(
        Change(seq=seq, tenant=tenant, what=what, object_id=object_id, at=now)
        for seq, (tenant, object_id) in enumerate(about, last - len(about) + 1)
    )
    transaction.on_commit(loop.committed, robust=True)
    return last
