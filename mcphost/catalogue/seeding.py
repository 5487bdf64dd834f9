"""Publish functions for tenants that a command sets up: the demo and the conformance suite."""

from collections.abc import Iterable
from uuid import UUID

from django.db import transaction

from mcphost.audit.records import Actor
from mcphost.catalogue import kinds, services
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.models import Primitive
from mcphost.catalogue.rows import PrimitiveRow


@transaction.atomic
def publish_functions(
    tenant_id: UUID, references: Iterable[str], actor: Actor
) -> tuple[PrimitiveRow, ...]:
    """Grant each function, and publish it under the name its author gave it; return the new rows.

    Running it again changes nothing: an existing primitive of that type and name is left as its
    operators have it, in any state.

    Raises Invalid for a function that the code does not have.
    """
    return tuple(
        row
        for reference in references
        if (row := _publish_function(tenant_id, reference, actor)) is not None
    )


def _publish_function(tenant_id: UUID, reference: str, actor: Actor) -> PrimitiveRow | None:
    services.grant_function(tenant_id, reference, actor)
    said = kinds.compiled_function(reference)
    if Primitive.objects.filter(
        tenant=tenant_id, sort=said.primitive_type, name=said.name
    ).exists():
        return None
    fields = PrimitiveFields(
        name=said.name, config={"function": reference}, sort=said.primitive_type
    )
    return services.publish(services.create(tenant_id, fields, actor).id, actor)
