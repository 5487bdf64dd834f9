"""The stores of a tenant's tools, kept between calls: JSON under keys, read and written as a whole.
There is one for all callers, and one for each member.

Nothing is cached: a read returns the last value written, by whatever process. A write names the
revision that it follows, so that of two concurrent writes only one succeeds.
"""

import json
import time
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet
from django.utils import timezone

from mcphost.catalogue.models import MAX_KEY, StoredValue
from mcphost.runtime.ports import Stored, StoreRefusedError
from mcphost.tenants.models import Membership


class StoreOwner(NamedTuple):
    """Whose values: those of all callers of the tenant, or those of one of its members."""

    tenant: UUID
    member: UUID | None = None


MAX_BYTES = 64 * 1024
NOTHING = Stored(None, 0)


def get(owner: StoreOwner, key: str) -> Stored:
    """Return what is stored under `key`, or NOTHING. Raises StoreRefusedError for a bad key."""
    _check_key(key)
    row = _values(owner).filter(key=key).first()
    return NOTHING if row is None else Stored(json.loads(row.value), row.revision)


def put(owner: StoreOwner, key: str, value: Any, revision: int) -> bool:
    """Store `value` if the key has that revision (0: no value); return whether it was stored.

    Raises StoreRefusedError for a bad key, a value that is not JSON or too large, one key too many, or a
    member that has been removed.
    """
    _check_key(key)
    text = _json(value)
    if not revision:
        return _add(owner, key, text)
    rows = _values(owner).filter(key=key, revision=revision)
    return bool(rows.update(value=text, revision=F("revision") + 1, updated_at=timezone.now()))


def delete(owner: StoreOwner, key: str, revision: int) -> bool:
    """Delete the value if the key has that revision (0: no value); return whether it had.

    Raises StoreRefusedError for a bad key.
    """
    _check_key(key)
    rows = _values(owner).filter(key=key)
    return bool(rows.filter(revision=revision).delete()[0]) if revision else not rows.exists()


def _values(owner: StoreOwner) -> QuerySet[StoredValue]:
    return StoredValue.objects.filter(tenant=owner.tenant, member=owner.member)


@transaction.atomic
def _add(owner: StoreOwner, key: str, text: str) -> bool:
    if owner.member is not None:
        # Locked, so that the membership and its values are not removed between this and the insert.
        rows = Membership.objects.select_for_update(no_key=True)
        if rows.filter(pk=owner.member, tenant=owner.tenant).first() is None:
            raise StoreRefusedError("The user is no longer a member of the tenant.")
    if _values(owner).filter(key=key).exists():
        return False
    # Concurrent writes count the same keys: together they can exceed the limit by their number.
    of_tenant = owner.member is None
    limit = settings.MCPHOST_STORE_KEYS if of_tenant else settings.MCPHOST_USER_STORE_KEYS
    if _values(owner).count() >= limit:
        name = "tenant" if of_tenant else "user"
        raise StoreRefusedError(f"The {name}'s store is full: it may have at most {limit} values.")
    try:
        with transaction.atomic():
            StoredValue.objects.create(
                tenant_id=owner.tenant,
                member_id=owner.member,
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
