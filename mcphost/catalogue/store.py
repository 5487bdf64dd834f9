"""What a tenant's tools keep between calls: JSON under keys, read and written as a whole.

Nothing is cached: who reads gets what the last writer left, whichever process that was. A write
says which revision it follows, so that of two at once only one lands.
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
from mcphost.runtime.ports import Stored, StoreRefused

MAX_BYTES = 64 * 1024
NOTHING = Stored(None, 0)


def get(tenant: UUID, key: str) -> Stored:
    """What the tenant keeps under `key`, or NOTHING. Raises StoreRefused for what cannot be a key."""
    _check_key(key)
    row = StoredValue.objects.filter(tenant=tenant, key=key).first()
    return NOTHING if row is None else Stored(json.loads(row.value), row.revision)


def put(tenant: UUID, key: str, value: Any, revision: int) -> bool:
    """Keep `value` if what is there has that revision; 0 is that of nothing. Whether it was kept.

    Raises StoreRefused for what cannot be a key, is not JSON, is too large, or is one key too many.
    """
    _check_key(key)
    text = _json(value)
    return _change(tenant, key, text, revision) if revision else _add(tenant, key, text)


def delete(tenant: UUID, key: str, revision: int) -> bool:
    """Keep nothing there any more, if what is there has that revision. Whether it was so.

    Raises StoreRefused for what cannot be a key.
    """
    _check_key(key)
    rows = StoredValue.objects.filter(tenant=tenant, key=key, revision=revision)
    return bool(rows.delete()[0]) if revision else not _is_there(tenant, key)


def _is_there(tenant: UUID, key: str) -> bool:
    return StoredValue.objects.filter(tenant=tenant, key=key).exists()


def _change(tenant: UUID, key: str, text: str, revision: int) -> bool:
    rows = StoredValue.objects.filter(tenant=tenant, key=key, revision=revision)
    return bool(rows.update(value=text, revision=F("revision") + 1, updated_at=timezone.now()))


@transaction.atomic
def _add(tenant: UUID, key: str, text: str) -> bool:
    if _is_there(tenant, key):
        return False
    _check_room(tenant)
    try:
        with transaction.atomic():
            StoredValue.objects.create(
                tenant_id=tenant,
                key=key,
                value=text,
                revision=_first_revision(),
                updated_at=timezone.now(),
            )
    except IntegrityError:  # somebody else was there between the look and here
        return False
    return True


def _first_revision() -> int:
    """Microseconds since 1970: beyond any that a value of the same key got before it was deleted."""
    return time.time_ns() // 1000


def _check_room(tenant: UUID) -> None:
    """Who writes at the same moment counts the same keys: the limit is met give or take those."""
    most = settings.MCPHOST_STORE_KEYS
    if StoredValue.objects.filter(tenant=tenant).count() >= most:
        raise StoreRefused(f"This tenant keeps {most} values, and there is no room for another.")


def _check_key(key: str) -> None:
    if not 0 < len(key) <= MAX_KEY or not key.isprintable():
        raise StoreRefused(f"A key of the store is 1 to {MAX_KEY} printable characters.")


def _json(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise StoreRefused(f"Only JSON can be kept in the store: {error}") from None
    if size > MAX_BYTES:
        raise StoreRefused(f"A value of the store has at most {MAX_BYTES} bytes; this has {size}.")
    # U+0000 is written as an escape, so PostgreSQL takes what SQLite takes.
    return text
