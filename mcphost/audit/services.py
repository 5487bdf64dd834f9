"""Recording what people and the machine did, in the transaction that did it."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from mcphost.audit.models import Entry, Payload
from mcphost.audit.records import Actor, new_id
from mcphost.audit.texts import clean_json, clean_text

PAYLOAD_ERASED = "payload.erased"


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
