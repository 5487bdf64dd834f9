"""Documents of the console's pages, such as OpenAPI, kept for an hour: they are uploaded or fetched once.

A document is sealed, bound to its row, tenant and user. A user keeps a few: one for each open page.
"""

from datetime import timedelta
from typing import Final, NamedTuple
from uuid import UUID, uuid4

from django.db import transaction
from django.utils import timezone

from mcphost.audit.records import Actor
from mcphost.catalogue.models import KeptDocument
from mcphost.sealing.tokens import Purpose, SealError
from mcphost.tenants.access import lock_open_tenant
from mcphost.tenants.roles import Permission
from mcphost.vault import sealer

MAX_PER_USER: Final = 4
KEPT_FOR: Final = timedelta(hours=1)
PRUNED_AT_ONCE: Final = 500

_MAX_BYTES: Final = 48 * 1024 * 1024
"""The longest sealed document, in characters."""


class DocumentOwner(NamedTuple):
    """The user who keeps a document, and the tenant that it is for."""

    tenant: UUID
    user: int


class StoredDocument(NamedTuple):
    """A document that was kept, and where it was fetched from, if it was."""

    content: bytes
    location: str


def store_document(owner: DocumentOwner, document: StoredDocument) -> UUID:
    """Keep a document, instead of the user's oldest if there are too many. Returns its id.

    Raises SealError, VaultError, PermissionDenied if the user no longer edits the tenant's tools, and
    UnknownTenantError.
    """
    id = uuid4()
    context = _context(id, owner)
    content = sealer.seal(Purpose.ROW, owner.tenant, document.content, _MAX_BYTES, context)
    with transaction.atomic():
        lock_open_tenant(owner.tenant, Actor.person(owner.user, ""), Permission.EDIT_TOOLS)
        rows = KeptDocument.objects.filter(tenant=owner.tenant, user=owner.user)
        older = rows.order_by("-kept_at").values_list("id", flat=True)[MAX_PER_USER - 1 :]
        KeptDocument.objects.filter(id__in=list(older)).delete()
        KeptDocument.objects.create(
            id=id,
            tenant_id=owner.tenant,
            user=owner.user,
            location=document.location,
            content=content,
            kept_at=timezone.now(),
        )
    return id


def stored_document(owner: DocumentOwner, id: UUID) -> StoredDocument | None:
    """Return a document of this user and tenant; None if it is not kept any more. Raises VaultError."""
    since = timezone.now() - KEPT_FOR
    rows = KeptDocument.objects.filter(tenant=owner.tenant, user=owner.user, kept_at__gt=since)
    row = rows.filter(id=id).first()
    if row is None:
        return None
    try:
        context = _context(id, owner)
        content = sealer.unseal(Purpose.ROW, owner.tenant, row.content, _MAX_BYTES, context)
    except SealError:
        return None
    return StoredDocument(content, row.location)


def forget(owner: DocumentOwner, id: UUID) -> None:
    """Delete a document that is not needed any more."""
    KeptDocument.objects.filter(tenant=owner.tenant, user=owner.user, id=id).delete()


def prune() -> int:
    """Delete up to 500 documents that were kept long enough; return how many."""
    over = KeptDocument.objects.filter(kept_at__lte=timezone.now() - KEPT_FOR)
    ids = list(over.order_by("kept_at").values_list("id", flat=True)[:PRUNED_AT_ONCE])
    KeptDocument.objects.filter(id__in=ids).delete()
    return len(ids)


def _context(id: UUID, owner: DocumentOwner) -> bytes:
    return b"openapi document" + id.bytes + owner.user.to_bytes(8)
