"""Making keys, each once and for good, and checking that the master key is theirs."""

import secrets
from contextlib import suppress
from uuid import UUID

from django.db import models, transaction
from django.utils import timezone

from mcphost.audit.records import Actor
from mcphost.audit.services import record
from mcphost.feed.services import announce
from mcphost.sealing.tokens import KEY_BYTES, SALT_BYTES
from mcphost.vault import selectors
from mcphost.vault.errors import MasterKeyMismatch, NoActiveKeyError, NoSecretsError
from mcphost.vault.master import master_key
from mcphost.vault.models import RingKey, TenantSecret, place
from mcphost.vault.selectors import TenantSecrets
from mcphost.vault.states import KeyState
from mcphost.vault.wrapping import NONCE_BYTES, head, mismatch, unwrap, wrap


def verify_master_key() -> None:
    """Make sure that the master key is the one that wrapped what is in the database.

    An empty database asks for none. Raises MasterKeyMismatch if it is missing or another one, and
    DamagedSecretError if a key of the ring does not open although the master key is right.
    """
    keys = list(RingKey.objects.exclude(wrapped=""))
    stranger = TenantSecret.objects.all()
    if not keys and not stranger.exists():
        return
    kek = _master_key_of_keys()
    for row in keys:
        unwrap(row.wrapped, place(row, "wrapped"), kek)
    for name in ("wrapped_salt", "wrapped_payload_key"):
        others = stranger.exclude(**{name: ""}).exclude(**{f"{name}__startswith": head(kek)})
        wrapped = others.values_list(name, flat=True).first()
        if wrapped is not None:
            raise mismatch(wrapped, kek)


def ensure_ring() -> str:
    """Make the ring's first key if there is no active one; return the active key's id.

    Any number of processes may do so at once: the database takes one. Raises as verify_master_key,
    and MasterKeyMismatch when a key is to be made and there is no master key.
    """
    verify_master_key()
    with transaction.atomic():
        return _active_key_id() or _create_ring_key()


def ensure_tenant(tenant: UUID) -> TenantSecrets:
    """A tenant's secrets, made if it never had any. What was destroyed is not made again.

    Costs no query once they were read. Raises as `ensure_ring`.
    """
    with suppress(NoSecretsError):
        return selectors.secrets(tenant)
    _ensure_readable_ring()
    _create_tenant(tenant)
    return selectors.secrets(tenant)


def _master_key_of_keys() -> bytes:
    try:
        return master_key()
    except MasterKeyMismatch as error:
        raise MasterKeyMismatch(
            f"{error}. This database already holds keys, which only the master key that made them "
            "opens: give that one back, a new one would not help"
        ) from error


def _ensure_readable_ring() -> None:
    """Make no secrets under a master key that does not open the ring."""
    with suppress(NoActiveKeyError):
        selectors.ring()
        return
    ensure_ring()


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
    row.wrapped = _wrapped(secrets.token_bytes(KEY_BYTES), row, "wrapped")
    # ON CONFLICT DO NOTHING: when another process was faster, its key is the active one.
    RingKey.objects.bulk_create([row], ignore_conflicts=True)
    active = _active_key_id()
    assert active is not None
    if active == row.id:
        record("key.created", actor=Actor.system("vault"), target=row.id)
        transaction.on_commit(selectors.forget_ring)
        announce("key", object_id=row.id)
    return active


@transaction.atomic
def _create_tenant(tenant: UUID) -> None:
    row = TenantSecret(
        tenant=tenant, payload_key_id=secrets.token_hex(4), created_at=timezone.now()
    )
    row.wrapped_salt = _wrapped(secrets.token_bytes(SALT_BYTES), row, "wrapped_salt")
    payload_key = secrets.token_bytes(KEY_BYTES)
    row.wrapped_payload_key = _wrapped(payload_key, row, "wrapped_payload_key")
    TenantSecret.objects.bulk_create([row], ignore_conflicts=True)
    if TenantSecret.objects.filter(tenant=tenant, payload_key_id=row.payload_key_id).exists():
        target = row.payload_key_id
        record("secrets.created", actor=Actor.system("vault"), tenant=tenant, target=target)
        announce("key", tenant=tenant, object_id=target)


def _wrapped(secret: bytes, row: models.Model, name: str) -> str:
    return wrap(secret, place(row, name), master_key(), secrets.token_bytes(NONCE_BYTES))
