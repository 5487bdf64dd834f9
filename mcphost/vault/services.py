"""Make the first ring key and tenants' secrets, once each, and verify the master key."""

import secrets
from contextlib import suppress
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from mcphost.audit.records import Actor
from mcphost.audit.services import record
from mcphost.feed.services import announce
from mcphost.sealing.tokens import KEY_BYTES, SALT_BYTES
from mcphost.vault import selectors
from mcphost.vault.errors import MasterKeyMismatchError, NoActiveKeyError, NoSecretsError
from mcphost.vault.master import master_keys
from mcphost.vault.models import RingKey, TenantSecret
from mcphost.vault.selectors import TenantSecrets
from mcphost.vault.states import KeyState
from mcphost.vault.wrapping import head, mismatch, opened, wrapped


def verify_master_key() -> None:
    """Verify that the master key, or the new one, opens everything in the database.

    An empty database needs none. Raises MasterKeyMismatchError if it is missing or another one, and
    DamagedSecretError if a ring key cannot be unwrapped although the master key is right.
    """
    keys = list(RingKey.objects.exclude(wrapped=""))
    stranger = TenantSecret.objects.all()
    if not keys and not stranger.exists():
        return
    try:
        keks = master_keys()
    except MasterKeyMismatchError as error:
        raise MasterKeyMismatchError(
            f"{error}. This database already has keys that only their own master key can unwrap: restore "
            "that one, a new one would not help"
        ) from error
    for row in keys:
        opened(row, "wrapped", keks)
    for name in ("wrapped_salt", "wrapped_payload_key"):
        unopened = stranger.exclude(**{name: ""})
        for kek in keks.all():
            unopened = unopened.exclude(**{f"{name}__contains": head(kek)})
        unknown = unopened.values_list(name, flat=True).first()
        if unknown is not None:
            raise mismatch(unknown, *keks.all())


def ensure_ring() -> str:
    """Make the ring's first key if there is no active one; return the active key's id.

    Several processes may do so at once: the database accepts one key. Raises as
    `verify_master_key`, and MasterKeyMismatchError if a key must be made and there is no master key.
    """
    verify_master_key()
    with transaction.atomic():
        return _active_key_id() or _create_ring_key()


def ensure_tenant(tenant: UUID) -> TenantSecrets:
    """A tenant's secrets, made if it never had any. A destroyed salt is not made again.

    Costs no query once they are cached. Raises as `ensure_ring`.
    """
    with suppress(NoSecretsError):
        return selectors.secrets(tenant)
    try:  # the master key must open the ring before it wraps new secrets
        selectors.ring()
    except NoActiveKeyError:
        ensure_ring()
    row = TenantSecret(
        tenant=tenant, payload_key_id=secrets.token_hex(4), created_at=timezone.now()
    )
    keks = master_keys()
    row.wrapped_salt = wrapped(secrets.token_bytes(SALT_BYTES), row, "wrapped_salt", keks)
    payload_key = secrets.token_bytes(KEY_BYTES)
    row.wrapped_payload_key = wrapped(payload_key, row, "wrapped_payload_key", keks)
    with transaction.atomic():
        TenantSecret.objects.bulk_create([row], ignore_conflicts=True)
        if TenantSecret.objects.filter(tenant=tenant, payload_key_id=row.payload_key_id).exists():
            target = row.payload_key_id
            record("secrets.created", actor=Actor.system("vault"), tenant=tenant, target=target)
            announce("key", tenant=tenant, object_id=target)
    return selectors.secrets(tenant)


def _active_key_id() -> str | None:
    active = RingKey.objects.filter(state=KeyState.ACTIVE)
    return active.values_list("id", flat=True).first()


def _create_ring_key() -> str:
    now = timezone.now()
    row = RingKey(
        id=secrets.token_hex(4),
        state=KeyState.ACTIVE,
        created_at=now,
        activated_at=now,
        state_since=now,
    )
    row.wrapped = wrapped(secrets.token_bytes(KEY_BYTES), row, "wrapped", master_keys())
    # ON CONFLICT DO NOTHING: if another process was faster, its key is the active one.
    RingKey.objects.bulk_create([row], ignore_conflicts=True)
    active = _active_key_id()
    assert active is not None
    if active == row.id:
        record("key.created", actor=Actor.system("vault"), target=row.id)
        transaction.on_commit(selectors.forget_ring)
        announce("key", object_id=row.id)
    return active
