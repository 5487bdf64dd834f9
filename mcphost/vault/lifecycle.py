"""Rotate, retire and destroy keys of the ring, and destroy a tenant's salt.

Each service is one transaction with one entry in the record and one row in the change log. It locks
the ring, and changes only rows whose state has not changed meanwhile. Raises KeyRefusalError for an
operation that is not possible, VaultError, and PermissionDenied if the actor no longer has the right.

A rotation has two parts. `rotate` writes a key on standby, which does not seal yet. Once every
ready process has had time to read it, `run_due_transitions` makes it the active key. `run_due_transitions` is called by the
command that waits for the rotation, and regularly by the platform's periodic work; the first call
takes effect. `rotate_if_old` rotates by age. Times are the database's, so the machines' clocks do not matter.
"""

import logging
import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from mcphost.audit.records import Actor
from mcphost.audit.services import record
from mcphost.feed.loop import SILENT_SECONDS
from mcphost.feed.services import announce
from mcphost.sealing.tokens import KEY_BYTES
from mcphost.tenants.access import lock_tenant, require_still
from mcphost.tenants.roles import Permission
from mcphost.vault import selectors
from mcphost.vault.errors import (
    KeyRefusalError,
    MasterKeyMismatchError,
    NoActiveKeyError,
    UnknownKeyError,
)
from mcphost.vault.master import master_keys
from mcphost.vault.models import RingKey, TenantSecret
from mcphost.vault.services import ensure_tenant
from mcphost.vault.states import TRANSITIONS, KeyState, KeyVerb, next_state
from mcphost.vault.wrapping import kek_id, opened, wrapped, wrappers

STANDBY: Final = timedelta(seconds=SILENT_SECONDS)
"""How long a key is on standby. A process that reads no changes for longer is not ready."""

SLACK: Final = timedelta(minutes=5)
"""For differing clocks, and for tokens sealed by a process that learned of the rotation late."""

SCHEDULER: Final = Actor.system("vault")

log = logging.getLogger(__name__)


@transaction.atomic
def rotate(actor: Actor, compromised: bool = False, *, replaces: str | None = None) -> str:
    """Add a new key to the ring; return its id. After `STANDBY`, `run_due_transitions` makes it the active key.

    `compromised`: the active key may be known to others. The new key is active at once. The old
    one, and one on standby, are retired: each process stops using them as soon as it is notified.
    `replaces` is the key that the user saw as the active one: another one is not replaced.
    """
    require_still(actor, None, Permission.MANAGE_KEYS)
    ring = _lock_ring()
    active = next((row for row in ring if row.state == KeyState.ACTIVE), None)
    if active is None:
        raise NoActiveKeyError("the key ring has no active key: run `manage.py init`")
    if replaces is not None and replaces != active.id:
        raise _changed_meanwhile(active)
    _refuse_other_master_keys(active)
    if compromised:
        retired = _apply(RingKey.objects.all(), KeyVerb.COMPROMISE)
        made = _create_key(KeyState.ACTIVE)
    else:
        _refuse_two_at_once(ring)
        retired = []
        made = _create_key(KeyState.STANDBY)
    facts = {"replaces": active.id, "compromised": compromised, "retired": retired}
    _record_and_announce("key.rotated", made, actor, facts)
    return made


@transaction.atomic
def retire(key_id: str, actor: Actor, *, was: str | None = None) -> None:
    """Retire a key before its last token has expired: it opens no tokens any more.

    Retiring a key on standby cancels the rotation: the active key stays. `was` is the state that the
    user saw the key in: in another one it is not retired.
    """
    require_still(actor, None, Permission.MANAGE_KEYS)
    row = _find_key(_lock_ring(), key_id)
    require(row.id, KeyState(row.state), KeyVerb.RETIRE)
    if was is not None and was != row.state:
        raise _changed_meanwhile(row)
    _apply(RingKey.objects.filter(pk=row.pk), KeyVerb.RETIRE)
    _record_and_announce("key.retired", row.id, actor, {"was": row.state, "expired": False})


@transaction.atomic
def destroy(key_id: str, actor: Actor) -> None:
    """Erase the secret of a retired key. Tokens sealed under it are lost for good."""
    require_still(actor, None, Permission.MANAGE_KEYS)
    row = _find_key(_lock_ring(), key_id)
    require(row.id, KeyState(row.state), KeyVerb.DESTROY)
    _apply(RingKey.objects.filter(pk=row.pk), KeyVerb.DESTROY, wrapped="")
    _record_and_announce("key.destroyed", row.id, actor, {})


def require(key_id: str, state: KeyState, verb: KeyVerb) -> None:
    """Raise KeyRefusalError, with the reason, unless the verb is possible in this state."""
    if next_state(state, verb) is None:
        raise KeyRefusalError(_CANNOT[verb, state].format(key_id))


def lifetime() -> timedelta:
    """How long a replaced key still opens tokens: the longest lifetime of a token, and SLACK."""
    longest = max(
        # A session outlives its maximum by a question that is open.
        settings.MCPHOST_CLIENT_SESSION_MAX_SECONDS + settings.MCPHOST_MAX_ANSWER_SECONDS,
        settings.MCPHOST_TASK_SECONDS,
    )
    return timedelta(seconds=longest) + SLACK


def rotate_if_old() -> None:
    """Rotate if the active key is older than `MCPHOST_KEY_ROTATION_SECONDS`, unless that is 0.

    Does nothing while a rotation is in progress. Costs one query when nothing is due. Call it
    regularly, on any number of processes.
    """
    seconds = settings.MCPHOST_KEY_ROTATION_SECONDS
    if not seconds or not _is_old(seconds):
        return
    with transaction.atomic():
        _lock_ring()
        if not _is_old(seconds):  # another process has rotated meanwhile
            return
        try:
            log.info("key %s is written: the active key is old", rotate(SCHEDULER))
        except MasterKeyMismatchError as error:
            log.warning("the active key is old, and cannot be replaced: %s", error)


def _is_old(seconds: float) -> bool:
    """Whether the active key is older, and no other one is to replace it already."""
    old = Q(state=KeyState.ACTIVE, state_since__lte=Now() - timedelta(seconds=seconds))
    waiting = RingKey.objects.filter(state=KeyState.STANDBY)
    return RingKey.objects.filter(old, ~Exists(waiting)).exists()


def run_due_transitions(actor: Actor = SCHEDULER) -> Sequence[str]:
    """Do what is due: activate a key on standby, retire keys whose last token has expired.

    Returns what was done, as text; nothing if another process was faster. Costs one query when
    nothing is due. Call it regularly.
    """
    done: list[str] = []
    for row in _due_keys():
        if row.state == KeyState.STANDBY:
            done += _promote(row.id, actor)
        else:
            done += _retire_expired(row.id, actor)
    for message in done:
        log.info("%s", message)
    return done


def destroy_salt(tenant: UUID, actor: Actor) -> bool:
    """Destroy a tenant's salt: none of its tokens can be opened, or new ones sealed, any more.

    False if it was destroyed before. Its records stay readable. The salt cannot be restored. Raises
    UnknownTenantError.
    """
    ensure_tenant(tenant)
    with transaction.atomic():
        lock_tenant(tenant, actor, Permission.MANAGE_TENANT)
        row = TenantSecret.objects.filter(tenant=tenant)
        destroyed = row.exclude(wrapped_salt="").update(wrapped_salt="")
        if destroyed:
            record("salt.destroyed", actor=actor, tenant=tenant, target=str(tenant))
            announce("key", tenant=tenant, object_id="salt")
    return bool(destroyed)


def _lock_ring() -> list[RingKey]:
    """Lock all keys until the transaction ends, so that no two commands change the ring at once."""
    len(RingKey.objects.select_for_update())
    # Read again: a query that waited for the lock does not see rows added meanwhile.
    return list(RingKey.objects.all())


def _find_key(ring: Sequence[RingKey], key_id: str) -> RingKey:
    key = next((row for row in ring if row.id == key_id), None)
    if key is None:
        raise UnknownKeyError(key_id)
    return key


def _changed_meanwhile(row: RingKey) -> KeyRefusalError:
    """Return the refusal of a change that was decided on when the key was in another state."""
    return KeyRefusalError(
        f"nothing was changed: key {row.id} has become {row.state} meanwhile. Look at the keys again "
        "before you change them"
    )


def _refuse_other_master_keys(active: RingKey) -> None:
    """Refuse a new key while a process with another master key could not unwrap it.

    That is when another master key wraps the ring, too. Raises MasterKeyMismatchError.
    """
    keys = master_keys()
    opened(active, "wrapped", keys)
    missing = wrappers(active.wrapped) - set(map(kek_id, keys.all()))
    if missing:
        raise MasterKeyMismatchError(
            f"the key ring is also wrapped under master key {' and '.join(sorted(missing))}, which this "
            "process does not have: set it as MCPHOST_NEW_MASTER_KEY"
        )


def _refuse_two_at_once(ring: Sequence[RingKey]) -> None:
    waiting = next((row.id for row in ring if row.state == KeyState.STANDBY), None)
    if waiting is not None:
        raise KeyRefusalError(
            f"a rotation is in progress: key {waiting} becomes active in a few seconds; wait for that, "
            "or retire it to cancel the rotation"
        )


def _create_key(state: KeyState) -> str:
    now = Now()
    row = RingKey(id=secrets.token_hex(4), state=state, created_at=timezone.now(), state_since=now)
    if state is KeyState.ACTIVE:
        row.activated_at = now
    row.wrapped = wrapped(secrets.token_bytes(KEY_BYTES), row, "wrapped", master_keys())
    row.save(force_insert=True)
    return row.id


def _apply(keys: QuerySet[RingKey], verb: KeyVerb, **also: Any) -> list[str]:
    """Apply the verb by compare-and-set, from all states that have it; return the changed ids."""
    moved: list[str] = []
    for state in TRANSITIONS:
        target = next_state(state, verb)
        if target is not None:
            ids = list(keys.filter(state=state).values_list("id", flat=True))
            changed = RingKey.objects.filter(pk__in=ids, state=state)
            if changed.update(state=target, state_since=Now(), **also):
                moved += ids
    return moved


def _due_keys() -> list[RingKey]:
    waited = Q(state=KeyState.STANDBY, state_since__lte=Now() - STANDBY)
    expired = Q(state=KeyState.RETIRING, state_since__lte=Now() - lifetime())
    return list(RingKey.objects.filter(waited | expired))


@transaction.atomic
def _promote(key_id: str, actor: Actor) -> list[str]:
    _lock_ring()
    waiting = RingKey.objects.filter(pk=key_id, state=KeyState.STANDBY)
    if not waiting.exists():
        return []
    replaced = _apply(RingKey.objects.filter(state=KeyState.ACTIVE), KeyVerb.REPLACE)
    _apply(waiting, KeyVerb.PROMOTE, activated_at=Now())
    _record_and_announce("key.promoted", key_id, actor, {"replaced": replaced})
    return [f"key {key_id} is now the active key; replaced: {' '.join(replaced) or 'none'}"]


@transaction.atomic
def _retire_expired(key_id: str, actor: Actor) -> list[str]:
    _lock_ring()
    if not _apply(RingKey.objects.filter(pk=key_id, state=KeyState.RETIRING), KeyVerb.RETIRE):
        return []
    _record_and_announce("key.retired", key_id, actor, {"was": KeyState.RETIRING, "expired": True})
    return [f"key {key_id} is retired: its last token has expired"]


def _record_and_announce(action: str, key_id: str, actor: Actor, facts: dict[str, Any]) -> None:
    record(action, actor=actor, target=key_id, facts=facts)
    transaction.on_commit(selectors.forget_ring)
    announce("key", object_id=key_id)


_RETIRED = "key {} is already retired"
_DESTROYED = "key {} is already destroyed"
_CANNOT: Final = {
    (KeyVerb.RETIRE, KeyState.ACTIVE): (
        "key {} is the active key: rotate, and it is retired once its last token has expired; if it may "
        "be known to others, replace it as compromised"
    ),
    (KeyVerb.RETIRE, KeyState.RETIRED): _RETIRED,
    (KeyVerb.RETIRE, KeyState.DESTROYED): _DESTROYED,
    (KeyVerb.DESTROY, KeyState.STANDBY): (
        "key {} is about to become active: retire it first, which cancels the rotation"
    ),
    (KeyVerb.DESTROY, KeyState.ACTIVE): (
        "key {} is the active key: rotate, and wait until it is retired"
    ),
    (KeyVerb.DESTROY, KeyState.RETIRING): (
        "key {} still opens tokens: retire it first, or wait until it is retired"
    ),
    (KeyVerb.DESTROY, KeyState.DESTROYED): _DESTROYED,
}
