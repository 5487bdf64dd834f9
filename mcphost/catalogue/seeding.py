"""Publish functions for tenants that a command sets up: the demo and the conformance suite."""

import logging
from collections.abc import Iterable
from uuid import UUID

from django.db import transaction

from mcphost.audit.records import Actor
from mcphost.catalogue import kinds, services
from mcphost.catalogue.errors import InvalidPrimitiveError
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.models import Primitive
from mcphost.catalogue.rows import PrimitiveRow

log = logging.getLogger(__name__)


@transaction.atomic
def publish_functions(
    tenant_id: UUID, references: Iterable[str], actor: Actor
) -> tuple[PrimitiveRow, ...]:
    """Grant each function, and publish it under the name its author gave it; return the new rows.

    Running it again changes nothing: an existing primitive of that type and name is left as its
    operators have it, in any state. A function that cannot be published, such as one without a
    description, is granted only, and logged: it keeps no server from being set up.

    Raises InvalidPrimitiveError for a function that the code does not have.
    """
    rows: list[PrimitiveRow] = []
    for reference in references:
        services.grant_function(tenant_id, reference, actor)
        compiled = kinds.compiled_function(reference)
        namesakes = Primitive.objects.filter(
            tenant=tenant_id, primitive_type=compiled.primitive_type, name=compiled.name
        )
        if not namesakes.exists():
            fields = PrimitiveFields(
                name=compiled.name,
                config={"function": reference},
                primitive_type=compiled.primitive_type,
            )
            try:
                with transaction.atomic():
                    created = services.create(tenant_id, fields, actor)
                    rows.append(services.publish(created.id, actor))
            except InvalidPrimitiveError as error:
                log.error("the function %s is not published: %s", reference, error)
    return tuple(rows)
