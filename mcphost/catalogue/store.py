"""The store of a tenant's tools, kept between calls: JSON under keys, read and written as a whole.

Nothing is cached: a read returns the last value written, by whatever process. A write names the
revision that it follows, so that of two concurrent writes only one succeeds.
"""

import json
import time
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone

from mcphost.catalogue.models import MAX_KEY, StoredValue
from mcphost.runtime.ports import Stored, StoreRefusedError

MAX_BYTES = 64 * 1024
NOTHING = Stored(None, 0)


def get(tenant: UUID, key: str) -> Stored:
    """Return what the tenant stores under `key`, or NOTHING. Raises StoreRefusedError for a bad key."""
    _check_key(key)
    row = StoredValue.objects.filter(tenant=tenant, key=key).first()
    return NOTHING if row is None else Stored(json.loads(row.value), row.revision)


def put(tenant: UUID, key: str, value: Any, revision: int) -> bool:
    """Store `value` if the key has that revision (0: no value); return whether it was stored.

    Raises StoreRefusedError for a bad key, a value that is not JSON or too large, or one key too many.
    """
    _check_key(key)
    text = _json(value)
    if not revision:
        return _add(tenant, key, text)
    rows = StoredValue.objects.filter(tenant=tenant, key=key, revision=revision)
    return bool(rows.update(value=text, revision=F("revision") + 1, updated_at=timezone.now()))


def delete(tenant: UUID, key: str, revision: int) -> bool:
    """Delete the value if the key has that revision (0: no value); return whether it had.

    Raises StoreRefusedError for a bad key.
    """
    _check_key(key)
    rows = StoredValue.objects.filter(tenant=tenant, key=key, revision=revision)
    return bool(rows.delete()[0]) if revision else not _is_there(tenant, key)


def _is_there(tenant: UUID, key: str) -> bool:
    return StoredValue.objects.filter(tenant=tenant, key=key).exists()


@transaction.atomic
def _add(tenant: UUID, key: str, text: str) -> bool:
    if _is_there(tenant, key):
        return False
    # Concurrent writes count the same keys: together they can exceed the limit by their number.
    max_values = settings.MCPHOST_STORE_KEYS
    if StoredValue.objects.filter(tenant=tenant).count() >= max_values:
        raise StoreRefusedError(
            f"The tenant's store is full: it may have at most {max_values} values."
        )
    try:
        with transaction.atomic():
            StoredValue.objects.create(
                tenant_id=tenant,
                key=key,
                value=text,
                # Microseconds since 1970: above every revision that a deleted value of it had.
                revision=time.time_ns() // 1000,
                updated_at=timezone.now(),
            )
    except IntegrityError:  # a concurrent write added the key after the check
        return False
    return True


def _check_key(key: str) -> None:
    if not 0 < len(key) <= MAX_KEY or not key.isprintable():
        raise StoreRefusedError(
            f"A key of the store must have 1 to {MAX_KEY} printable characters."
        )


def _json(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreRefusedError(f"Only JSON can be stored: {error}") from None
    if size > MAX_BYTES:
        raise StoreRefusedError(
            f"A stored value may have at most {MAX_BYTES} bytes; this has {size}."
        )
    # U+0000 is written as an escape, so PostgreSQL accepts what SQLite accepts.
    return text
