"""Responses to creations by the API, stored under the caller's Idempotency-Key for a day."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.db import DEFAULT_DB_ALIAS, OperationalError, connections
from django.utils import timezone
from psycopg.errors import LockNotAvailable

from mcphost.identity.models import IdempotencyKey

KEPT_FOR: Final = timedelta(hours=24)
PRUNED_AT_ONCE: Final = 500
LOCK_MS: Final = 3000
"""How long a repeated request waits for the first one to end."""
CLAIMED_FOR: Final = timedelta(minutes=5)
"""How long a key is claimed at most: longer than any request that claims one. After that its process is dead."""
_RUNNING: Final = 0
"""The status of a row until the response is stored."""


class StillRunningError(Exception):
    """A request with the same key did not end in time."""


@dataclass(frozen=True, slots=True)
class StoredReply:
    """A response that was stored. `request` is the digest of the request that it answered."""

    request: str
    status: int
    headers: Mapping[str, str]
    body: bytes


def stored_reply(caller: str, key: str) -> StoredReply | None:
    """Return the response that is stored under a caller's key, unless it is older than a day."""
    since = timezone.now() - KEPT_FOR
    row = IdempotencyKey.objects.filter(caller=caller, key=key, created_at__gt=since).first()
    if row is None or row.status == _RUNNING:
        return None
    return StoredReply(row.request, row.status, row.headers, row.body.encode())


def reserve_key(caller: str, key: str, request: str) -> bool:
    """Reserve a caller's key, first in the transaction of the creation; False if it has a response.

    If another transaction has it reserved, this waits until that one ends. Raises StillRunningError
    if it does not end in time.
    """
    now = timezone.now()
    rows = IdempotencyKey.objects.filter(caller=caller, key=key)
    with _short_lock_wait():
        rows.filter(created_at__lte=now - KEPT_FOR).delete()
        row = IdempotencyKey(
            caller=caller, key=key, request=request, status=_RUNNING, created_at=now
        )
        IdempotencyKey.objects.bulk_create([row], ignore_conflicts=True)
        running = rows.filter(status=_RUNNING).values_list("request", flat=True).first()
    if running not in (None, request):
        raise StillRunningError
    return running is not None


def claim_key(caller: str, key: str, request: str) -> bool:
    """Claim a caller's key for a request that acts before its transaction; False if it has a response.

    The claim is committed at once, so that no process acts twice. `reserve_key` accepts it, and
    `release_key` ends it without a response. Raises StillRunningError while another request has it.
    """
    now = timezone.now()
    rows = IdempotencyKey.objects.filter(caller=caller, key=key)
    rows.filter(created_at__lte=now - KEPT_FOR).delete()
    rows.filter(status=_RUNNING, created_at__lte=now - CLAIMED_FOR).delete()
    row, is_new = IdempotencyKey.objects.get_or_create(
        caller=caller,
        key=key,
        defaults={"request": request, "status": _RUNNING, "created_at": now},
    )
    if not is_new and row.status == _RUNNING:
        raise StillRunningError
    return is_new


def release_key(caller: str, key: str) -> None:
    """End a claim whose request has no response to store: it can be repeated."""
    IdempotencyKey.objects.filter(caller=caller, key=key, status=_RUNNING).delete()


def store_reply(caller: str, key: str, reply: StoredReply) -> None:
    """Store the response, last in the transaction of the creation."""
    IdempotencyKey.objects.filter(caller=caller, key=key).update(
        status=reply.status, headers=dict(reply.headers), body=reply.body.decode()
    )


def prune() -> int:
    """Delete up to 500 keys that were kept long enough; return how many."""
    over = IdempotencyKey.objects.filter(created_at__lte=timezone.now() - KEPT_FOR)
    ids = list(over.order_by("created_at").values_list("id", flat=True)[:PRUNED_AT_ONCE])
    IdempotencyKey.objects.filter(id__in=ids).delete()
    return len(ids)


@contextmanager
def _short_lock_wait() -> Iterator[None]:
    """Limit waits for locks in the context; SQLite has one writer, which is waited for anyway."""
    connection = connections[DEFAULT_DB_ALIAS]
    if connection.vendor != "postgresql":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL lock_timeout = {LOCK_MS}")
        try:
            yield
        except OperationalError as error:
            if isinstance(error.__cause__, LockNotAvailable):
                raise StillRunningError from None
            raise
        cursor.execute("SET LOCAL lock_timeout = DEFAULT")
