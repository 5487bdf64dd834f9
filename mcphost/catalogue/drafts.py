"""Tools that are not saved: checked and compiled for a trial, as publishing would."""

from dataclasses import replace
from typing import Final
from uuid import UUID

from mcphost.catalogue import outgoing, validation
from mcphost.catalogue.errors import InvalidPrimitiveError
from mcphost.catalogue.fields import PrimitiveFields, snapshot
from mcphost.catalogue.loading import PublishedRow, compile_row
from mcphost.catalogue.services import working_digest
from mcphost.catalogue.snapshots import ToolSnapshot
from mcphost.kinds.primitive_types import PrimitiveType

UNNAMED: Final = "draft"
_DIGITS: Final = 16
_NOT_A_TOOL: Final = "Only tools can be tried."


def compile_draft(
    tenant_id: UUID, fields: PrimitiveFields, primitive_id: UUID | None = None
) -> ToolSnapshot:
    """Compile a tool as the form has it; `primitive_id` is its own, if it is saved.

    Only the texts that clients read may be missing. Its version is `draft+` and digits that identify
    the definition. Raises InvalidPrimitiveError with all problems by field.
    """
    if fields.primitive_type is not PrimitiveType.TOOL:
        raise InvalidPrimitiveError({"primitive_type": [_NOT_A_TOOL]})
    fields = validation.normalized(fields)
    fields = replace(fields, name=fields.name or UNNAMED, description=fields.description or UNNAMED)
    ready = validation.check(tenant_id, fields, primitive_id)
    if refused := outgoing.problems(tenant_id, fields.kind, fields.config):
        raise InvalidPrimitiveError(refused)
    primitive_type, published = fields.primitive_type.value, snapshot(fields)
    row = PublishedRow(
        primitive_id or tenant_id, tenant_id, fields.name, primitive_type, None, 0, published, True
    )
    compiled = compile_row(row)
    assert isinstance(compiled, ToolSnapshot)
    digest = working_digest(ready, fields)
    return replace(compiled, version=f"{UNNAMED}+{digest[:_DIGITS]}")
