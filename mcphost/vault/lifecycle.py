"""The life of the ring's keys, and the end of a tenant's salt.

Each service is one transaction, one entry in the record and one change in the feed. It holds the
ring until it is done, and changes only rows that are still in the state they were in. Who may use it
is decided by the caller. Raises KeyRefusalError for what cannot be done, and VaultError.

A rotation has two parts. `rotate` writes a key that nobody seals with yet; once every process that is
ready has had time to hear of it, `tend` has it seal: called by whoever waits for it, and now and then
by every serving process, of which the first does it. Times are the database's, so that clocks of
machines do not matter.
"""

import logging
import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from mcphost.audit.records import Actor
from mcphost.audit.services import record
from mcphost.feed.loop import SILENT_SECONDS
from mcphost.feed.services import announce
from mcphost.sealing.tokens import KEY_BYTES
from mcphost.vault import selectors
from mcphost.vault.errors import (
    KeyRefusalError,
    MasterKeyMismatch,
    NoActiveKeyError,
    UnknownKeyError,
)
from mcphost.vault.master import master_keys
from mcphost.vault.models import RingKey, TenantSecret
from mcphost.vault.rows import opened, wrapped
from mcphost.vault.services import ensure_tenant
from mcphost.vault.states import TRANSITIONS, KeyState, Verb, following
from mcphost.vault.wrapping import kek_id, wrappers

STANDBY: Final = timedelta(seconds=SILENT_SECONDS)
"""A process that has not heard of a key for longer is not ready (`feed.loop`)."""

SLACK: Final = timedelta(minutes=5)
"""For clocks that are not alike, and for what was sealed by a process that heard of it late."""

TENDER: Final = Actor.system("vault")

log = logging.getLogger(__name__)


@transaction.atomic
def rotate(actor: Actor, compromised: bool = False) -> str:
    """Put a new key into the ring; its id. It seals in `STANDBY` from now, when `tend` is called.

    `compromised`: somebody else may know the key that seals. The new one seals at once, and the old
    one opens nothing any more from the moment that a process hears of it. So do keys on standby.
    """
    ring = _held()
    active = next((row for row in ring if row.state == KeyState.ACTIVE), None)
    if active is None:
        raise NoActiveKeyError("the key ring has no active key: run `manage.py init`")
    _refuse_other_master_keys(active)
    if compromised:
        retired = _moved(RingKey.objects.all(), Verb.COMPROMISE)
        made = _make(KeyState.ACTIVE)
    else:
        _refuse_two_at_once(ring)
        retired = []
        made = _make(KeyState.STANDBY)
    facts = {"replaces": active.id, "compromised": compromised, "retired": retired}
    _tell("key.rotated", made, actor, facts)
    return made


@transaction.atomic
def retire(key_id: str, actor: Actor) -> None:
    """Have a key open nothing any more, before the last token under it has expired.

    A key on standby is taken back: the one that seals goes on.
    """
    row = _one(_held(), key_id)
    require(row.id, KeyState(row.state), Verb.RETIRE)
    _moved(RingKey.objects.filter(pk=row.pk), Verb.RETIRE)
    _tell("key.retired", row.id, actor, {"was": row.state, "expired": False})


@transaction.atomic
def destroy(key_id: str, actor: Actor) -> None:
    """Erase the secret of a retired key. What was sealed under it is lost for good."""
    row = _one(_held(), key_id)
    require(row.id, KeyState(row.state), Verb.DESTROY)
    _moved(RingKey.objects.filter(pk=row.pk), Verb.DESTROY, wrapped="")
    _tell("key.destroyed", row.id, actor, {})


def require(key_id: str, state: KeyState, verb: Verb) -> None:
    """Raises KeyRefusalError, with the reason, unless the verb is possible in this state."""
    if following(state, verb) is None:
        raise KeyRefusalError(_CANNOT[verb, state].format(key_id))


def lifetime() -> timedelta:
    """How long a replaced key goes on opening: as long as a token lives at most, and some."""
    longest = max(settings.MCPHOST_MAX_ANSWER_SECONDS, settings.MCPHOST_CLIENT_SESSION_SECONDS)
    return timedelta(seconds=longest) + SLACK


def tend(actor: Actor = TENDER) -> Sequence[str]:
    """Do what is due: have a key on standby seal, retire keys whose last token has expired.

    Returns what was done, in words; nothing when another process was faster. Costs one query when
    nothing is due. To be called now and then.
    """
    done: list[str] = []
    for row in _due():
        if row.state == KeyState.STANDBY:
            done += _promote(row.id, actor)
        else:
            done += _retire_expired(row.id, actor)
    for each in done:
        log.info("%s", each)
    return done


def destroy_salt(tenant: UUID, actor: Actor) -> bool:
    """Make every token of a tenant worthless, and let it have no new ones; False if that was done.

    Its records stay readable. Nothing brings the salt back.
    """
    ensure_tenant(tenant)
    with transaction.atomic():
        row = TenantSecret.objects.filter(tenant=tenant)
        gone = row.exclude(wrapped_salt="").update(wrapped_salt="")
        if gone:
            record("salt.destroyed", actor=actor, tenant=tenant, target=str(tenant))
            announce("key", tenant=tenant, object_id="salt")
    return bool(gone)


def _held() -> list[RingKey]:
    """The keys, held until the transaction ends, so that no two commands change the ring at once."""
    len(RingKey.objects.select_for_update())
    # Read again: who waited for the lock does not see what was added meanwhile.
    return list(RingKey.objects.all())


def _one(ring: Sequence[RingKey], key_id: str) -> RingKey:
    found = next((row for row in ring if row.id == key_id), None)
    if found is None:
        raise UnknownKeyError(key_id)
    return found


def _refuse_other_master_keys(active: RingKey) -> None:
    """Make no key that a process cannot open which can open all others."""
    keys = master_keys()
    opened(active, "wrapped", keys)
    missing = wrappers(active.wrapped) - set(map(kek_id, keys.all()))
    if missing:
        raise MasterKeyMismatch(
            f"the ring is wrapped by the master key {' and '.join(sorted(missing))} too, which this "
            "process does not have: give it that one as well, by MCPHOST_NEW_MASTER_KEY"
        )


def _refuse_two_at_once(ring: Sequence[RingKey]) -> None:
    waiting = next((row.id for row in ring if row.state == KeyState.STANDBY), None)
    if waiting is not None:
        raise KeyRefusalError(
            f"a rotation is under way: the key {waiting} seals in a few seconds; wait for that, or "
            "retire it to call the rotation off"
        )


def _make(state: KeyState) -> str:
    now = Now()
    row = RingKey(id=secrets.token_hex(4), state=state, created_at=timezone.now(), state_since=now)
    if state is KeyState.ACTIVE:
        row.activated_at = now
    row.wrapped = wrapped(secrets.token_bytes(KEY_BYTES), row, "wrapped", master_keys())
    row.save(force_insert=True)
    return row.id


def _moved(keys: QuerySet[RingKey], verb: Verb, **also: Any) -> list[str]:
    """The keys that the verb moved: compare and set, from every state that it leads from."""
    moved: list[str] = []
    for state in TRANSITIONS:
        target = following(state, verb)
        if target is not None:
            ids = list(keys.filter(state=state).values_list("id", flat=True))
            changed = RingKey.objects.filter(pk__in=ids, state=state)
            if changed.update(state=target, state_since=Now(), **also):
                moved += ids
    return moved


def _due() -> list[RingKey]:
    waited = Q(state=KeyState.STANDBY, state_since__lte=Now() - STANDBY)
    expired = Q(state=KeyState.RETIRING, state_since__lte=Now() - lifetime())
    return list(RingKey.objects.filter(waited | expired))


@transaction.atomic
def _promote(key_id: str, actor: Actor) -> list[str]:
    _held()
    waiting = RingKey.objects.filter(pk=key_id, state=KeyState.STANDBY)
    if not waiting.exists():
        return []
    replaced = _moved(RingKey.objects.filter(state=KeyState.ACTIVE), Verb.REPLACE)
    _moved(waiting, Verb.PROMOTE, activated_at=Now())
    _tell("key.promoted", key_id, actor, {"replaced": replaced})
    return [f"the key {key_id} seals now, in the place of {' '.join(replaced) or 'none'}"]


@transaction.atomic
def _retire_expired(key_id: str, actor: Actor) -> list[str]:
    _held()
    if not _moved(RingKey.objects.filter(pk=key_id, state=KeyState.RETIRING), Verb.RETIRE):
        return []
    _tell("key.retired", key_id, actor, {"was": KeyState.RETIRING, "expired": True})
    return [f"the key {key_id} is retired: the last token under it has expired"]


def _tell(action: str, key_id: str, actor: Actor, facts: dict[str, Any]) -> None:
    record(action, actor=actor, target=key_id, facts=facts)
    transaction.on_commit(selectors.forget_ring)
    announce("key", object_id=key_id)


_RETIRED = "the key {} is retired already"
_DESTROYED = "the key {} is destroyed already"
_CANNOT: Final = {
    (Verb.RETIRE, KeyState.ACTIVE): (
        "the key {} is the one that seals: rotate, and it retires when its last token has expired; if "
        "somebody else may know it, rotate as compromised"
    ),
    (Verb.RETIRE, KeyState.RETIRED): _RETIRED,
    (Verb.RETIRE, KeyState.DESTROYED): _DESTROYED,
    (Verb.DESTROY, KeyState.STANDBY): (
        "the key {} is about to seal: retire it first, which calls the rotation off"
    ),
    (Verb.DESTROY, KeyState.ACTIVE): (
        "the key {} is the one that seals: rotate, and let it retire first"
    ),
    (Verb.DESTROY, KeyState.RETIRING): (
        "the key {} still opens tokens: let it retire, or retire it, first"
    ),
    (Verb.DESTROY, KeyState.DESTROYED): _DESTROYED,
}
