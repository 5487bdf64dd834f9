"""Record actions of users and of the platform, in the transaction of the action."""

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from mcphost.audit.models import Entry, Payload
from mcphost.audit.ports import payload_cipher
from mcphost.audit.records import (
    CALL_CANCELLED,
    INPUT_REQUIRED,
    ROUND_FINISHED,
    TASK_CANCELLED,
    TASK_RETRIED,
    Actor,
    new_id,
)
from mcphost.audit.texts import clean_json, clean_text
from mcphost.runtime.call import Delivery

PAYLOAD_ERASED = "payload.erased"
CANCELLED = "cancelled"

_AT_ONCE = 500
"""Most rows of one INSERT: a statement may have 65,535 parameters, and an entry is 28 of them."""

_SHARED_COLUMNS = (
    "tenant", "call", "http_request_id", "actor_kind", "actor_id", "actor_label", "token_id", "method", "target",
    "target_version", "revision", "era", "delivery", "client_name", "client_version", "source",
    "trace_id",
)  # fmt: skip
"""The columns that all entries of a call share."""
_OF_THE_CALL = (
    "tenant", "call", "method", "target", "target_version", "revision", "era", "delivery",
    "client_name", "client_version", "trace_id",
)  # fmt: skip
"""Those of them that say nothing of who acts."""


class NoSuchPayloadError(LookupError):
    """The entry has no payload."""


def record(
    action: str,
    *,
    actor: Actor,
    tenant: UUID | None = None,
    target: str = "",
    facts: Mapping[str, Any] | None = None,
) -> UUID:
    """Write the entry of one action that is no call, in the caller's transaction; return its id.

    `action` is `<noun>.<past participle>`, e.g. `tool.published`; `target` is the object of it.
    """
    return _save_entry(
        actor,
        action=action,
        tenant=tenant,
        target=clean_text(target),
        facts=clean_json(facts or {}),
    )


def record_with_payload(
    action: str,
    payload: Mapping[str, Any],
    *,
    actor: Actor,
    tenant: UUID,
    target: str,
    facts: Mapping[str, Any],
) -> UUID:
    """As `record`, with a payload: it is encrypted under the key of the tenant, and only auditors read it."""
    cipher = payload_cipher()
    assert cipher is not None
    sealed = cipher.commit_and_seal(tenant, json.dumps(clean_json(payload)).encode())
    entry = _save_entry(
        actor,
        action=action,
        tenant=tenant,
        target=clean_text(target),
        facts=clean_json(facts),
        commitment=sealed.commitment,
    )
    Payload.objects.create(
        entry=entry, tenant=tenant, key_id=sealed.key_id, ciphertext=sealed.ciphertext
    )
    return entry


def record_each(
    action: str, about: Mapping[str, Mapping[str, Any]], *, actor: Actor, tenant: UUID
) -> None:
    """Write entries of one action that was done to several objects, as `record` does one.

    `about` has the facts of each object, by its name or id.
    """
    Entry.objects.bulk_create(
        (
            _new_entry(
                actor,
                action=action,
                tenant=tenant,
                target=clean_text(target),
                facts=clean_json(facts),
            )
            for target, facts in about.items()
        ),
        batch_size=_AT_ONCE,
    )


def cancel_task(call: UUID, tenant: UUID, target: str, reason: str, actor: Actor) -> None:
    """Record, in the caller's transaction, that a user cancelled the task of a call, and why."""
    _record_task(TASK_CANCELLED, call, tenant, target, actor, reason=reason)


def retry_task(call: UUID, tenant: UUID, target: str, actor: Actor) -> None:
    """Record, in the caller's transaction, that a user let the next round of a task run at once."""
    _record_task(TASK_RETRIED, call, tenant, target, actor)


def _record_task(
    action: str, call: UUID, tenant: UUID, target: str, actor: Actor, reason: str = ""
) -> None:
    _save_entry(
        actor,
        action=action,
        tenant=tenant,
        target=clean_text(target),
        reason=clean_text(reason),
        call=call,
    )
    _log_act(action, call, tenant, target, actor, reason)


def _log_act(action: str, call: UUID, tenant: UUID, target: str, actor: Actor, reason: str) -> None:
    """Record in the audit log, too, what a user did to a call: it has no entries of calls."""
    facts = {"tool": target, "call": str(call), **({"reason": reason} if reason else {})}
    record(action, actor=actor, tenant=tenant, target=target, facts=facts)


def _save_entry(actor: Actor, **columns: Any) -> UUID:
    entry = _new_entry(actor, **columns)
    entry.save()
    return entry.id


def _new_entry(actor: Actor, **columns: Any) -> Entry:
    return Entry(
        id=new_id(),
        at=timezone.now(),
        actor_kind=actor.kind,
        actor_id=clean_text(actor.id),
        actor_label=clean_text(actor.label),
        token_id=clean_text(actor.token_id),
        **columns,
    )


@transaction.atomic
def end_waiting(call: UUID, tenant: UUID, number: int, reason: str) -> bool:
    """Record that a call was cancelled without the answers that its round `number` asked for.

    The entry is the end of the round that would have come next. False if the call has gone on, or
    if this was recorded before.
    """
    rounds = Entry.objects.filter(call=call, tenant=tenant, action=ROUND_FINISHED)
    finished_round = rounds.filter(round=number, outcome=INPUT_REQUIRED).order_by("id").last()
    if finished_round is None or rounds.filter(round__gt=number).exists():
        return False
    shared_columns = {name: getattr(finished_round, name) for name in _SHARED_COLUMNS}
    Entry.objects.create(
        **shared_columns,
        id=new_id(),
        at=timezone.now(),
        round=number + 1,
        action=ROUND_FINISHED,
        outcome=CANCELLED,
        reason=clean_text(reason),
    )
    return True


def cancel_call(call: UUID, tenant: UUID, reason: str, actor: Actor) -> bool:
    """Record, in the caller's transaction, that a user cancelled a call of the tenant.

    False, and nothing is written, if no such call is known.
    """
    last = Entry.objects.filter(call=call, tenant=tenant, action=ROUND_FINISHED).order_by("id")
    of_call = last.values(*_OF_THE_CALL).last()
    if of_call is None:
        return False
    Entry.objects.create(
        **of_call,
        id=new_id(),
        at=timezone.now(),
        action=CALL_CANCELLED,
        actor_kind=actor.kind,
        actor_id=clean_text(actor.id),
        actor_label=clean_text(actor.label),
        outcome=CANCELLED,
        reason=clean_text(reason),
    )
    if of_call["delivery"] != Delivery.PLAYGROUND:  # a trial ends with its page
        _log_act(CALL_CANCELLED, call, tenant, of_call["target"], actor, reason)
    return True


@transaction.atomic
def erase_payload(entry_id: UUID, actor: Actor) -> bool:
    """Erase the payload of an entry, but keep its commitment; False if it was erased before.

    Leaves a tombstone, and records the erasure. Raises NoSuchPayloadError.
    """
    payload = Payload.objects.filter(entry=entry_id)
    erased = payload.filter(erased_at=None).update(
        ciphertext=b"", erased_at=timezone.now(), erased_by=clean_text(actor.label or actor.kind)
    )
    tenant = payload.values_list("tenant", flat=True).first()
    if tenant is None:
        raise NoSuchPayloadError(entry_id)
    if erased:
        record(PAYLOAD_ERASED, actor=actor, tenant=tenant, target=str(entry_id))
    return bool(erased)
