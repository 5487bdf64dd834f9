"""Tools for tenants that are set up by a command: the demo's and the conformance suite's."""

from collections.abc import Iterable
from uuid import UUID

from django.db import transaction

from mcphost.audit.records import Actor
from mcphost.catalogue import kinds, services
from mcphost.catalogue.fields import ToolFields
from mcphost.catalogue.models import Tool
from mcphost.catalogue.rows import ToolRow


@transaction.atomic
def publish_functions(
    tenant_id: UUID, references: Iterable[str], actor: Actor
) -> tuple[ToolRow, ...]:
    """Grant each function, and publish a tool of the name its author gave it; return the new ones.

    Running it again changes nothing: a tool of that name is left as its operators have it, in
    whatever state.

    Raises Invalid for a function that the code does not have.
    """
    return tuple(
        row
        for reference in references
        if (row := _publish_function(tenant_id, reference, actor)) is not None
    )


def _publish_function(tenant_id: UUID, reference: str, actor: Actor) -> ToolRow | None:
    services.grant_function(tenant_id, reference, actor)
    name = kinds.name_of(reference)
    if Tool.objects.filter(tenant=tenant_id, name=name).exists():
        return None
    fields = ToolFields(name=name, config={"function": reference})
    return services.publish(services.create_tool(tenant_id, fields, actor).id, actor)
