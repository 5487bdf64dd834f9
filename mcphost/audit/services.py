"""Recording what people and the machine did, in the transaction that did it."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from mcphost.audit.models import Entry, Payload
from mcphost.audit.records import INPUT_REQUIRED, ROUND_FINISHED, Actor, new_id
from mcphost.audit.texts import clean_json, clean_text

PAYLOAD_ERASED = "payload.erased"
CANCELLED = "cancelled"

_OF_A_CALL = (
    "tenant", "call", "leg", "actor_kind", "actor_id", "actor_label", "token_id", "method", "target",
    "target_version", "revision", "era", "delivery", "client_name", "client_version", "source",
    "trace_id",
)  # fmt: skip
"""What entries of one call have in common."""


class NoSuchPayloadError(LookupError):
    """There is no payload of that entry."""


def record(
    action: str,
    *,
    actor: Actor,
    tenant: UUID | None = None,
    target: str = "",
    facts: Mapping[str, Any] | None = None,
) -> UUID:
    """Write the entry of one verb in the caller's transaction; return its id.

    `action` is `<noun>.<past participle>`, e.g. `tool.published`; `target` is what it was done to.
    """
    entry = Entry.objects.create(
        id=new_id(),
        at=timezone.now(),
        tenant=tenant,
        action=action,
        actor_kind=actor.kind,
        actor_id=clean_text(actor.id),
        actor_label=clean_text(actor.label),
        token_id=clean_text(actor.token_id),
        target=clean_text(target),
        facts=clean_json(facts or {}),
    )
    return entry.id


@transaction.atomic
def end_waiting(call: UUID, tenant: UUID, number: int, reason: str) -> bool:
    """Write that a call ended without the answers that its round `number` asked for; False if it has
    gone on, or that was written before.

    It is the end of the round that would have come next.
    """
    rounds = Entry.objects.filter(call=call, tenant=tenant, action=ROUND_FINISHED)
    asked = rounds.filter(round=number, outcome=INPUT_REQUIRED).order_by("id").last()
    if asked is None or rounds.filter(round__gt=number).exists():
        return False
    said = {name: getattr(asked, name) for name in _OF_A_CALL}
    Entry.objects.create(
        **said,
        id=new_id(),
        at=timezone.now(),
        round=number + 1,
        action=ROUND_FINISHED,
        outcome=CANCELLED,
        reason=clean_text(reason),
    )
    return True


@transaction.atomic
def erase_payload(entry_id: UUID, actor: Actor) -> bool:
    """Erase what was said, keep the proof that it was said; False if it was erased before.

    Leaves a tombstone and an entry of its own. Raises NoSuchPayloadError.
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
