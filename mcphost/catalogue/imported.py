"""Tools that were imported from an OpenAPI document, and what the document said about them.

What the document said is stored beside the tool, in the transaction that creates or changes it, so
that the next import knows which changes are the operator's.
"""

from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from django.db import transaction

from mcphost.audit.records import Actor
from mcphost.catalogue import services
from mcphost.catalogue.fields import fingerprint
from mcphost.catalogue.models import ImportedOperation
from mcphost.catalogue.rows import PrimitiveRow
from mcphost.catalogue.validation import Inspected

ImportedDefinition = Mapping[str, Any]
"""What a document says of an operation, as `kinds.http.openapi_merge.ToolContent` stores it."""


def definitions_of(primitives: Collection[UUID]) -> Mapping[UUID, ImportedDefinition]:
    """Return what documents said of these tools at their last import."""
    rows = ImportedOperation.objects.filter(primitive__in=primitives)
    return dict(rows.values_list("primitive_id", "definition"))


@transaction.atomic
def create(tenant: UUID, fields: Inspected, definition: ImportedDefinition, actor: Actor) -> None:
    """Create a draft of an operation. Raises as `services.create_inspected`."""
    row = services.create_inspected(tenant, fields, actor)
    ImportedOperation.objects.create(primitive_id=row.id, definition=definition)


@transaction.atomic
def change(
    before: PrimitiveRow, fields: Inspected, definition: ImportedDefinition, actor: Actor
) -> None:
    """Change the working copy of a tool that is still as it was read. Raises as
    `services.update_inspected`."""
    services.update_inspected(before.id, fields, actor, based_on=fingerprint(before.fields))
    ImportedOperation.objects.update_or_create(
        primitive_id=before.id, defaults={"definition": definition}
    )
