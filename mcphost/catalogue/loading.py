"""Reading what a tenant serves: one query, then compiled.

What decides is the version that was published (the operator's title, description, scopes, limits,
icons and configuration) and, for everything else, the code as it is now: schemas, annotations and
the texts that the operator left to it. When a deployment changed the code's schemas since the
publication, what is served are the new ones, because they are what the function will accept, and
the digest in the version's label is that of what is served.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from mcphost.catalogue import compiling
from mcphost.catalogue.compiling import Face, NotServableError
from mcphost.catalogue.kinds import KindError
from mcphost.catalogue.models import Grant, Tool
from mcphost.catalogue.snapshots import Toolbox, ToolProblem, ToolSnapshot, toolbox_of
from mcphost.catalogue.states import State
from mcphost.tenants.models import Tenant

READ_AT_ONCE = 500

log = logging.getLogger(__name__)

_GRANT = Grant.objects.filter(tenant=OuterRef("tenant"), function=OuterRef("live__function"))
# Built once, because building it takes Django longer than the database needs to answer it.
_PUBLISHED: QuerySet[Tool, tuple[Any, ...]] = (
    Tool.objects.filter(state=State.PUBLISHED)
    .annotate(granted=Q(live__function="") | Exists(_GRANT))
    .order_by()
    .values_list("id", "tenant_id", "name", "live__number", "live__snapshot", "granted")
)


@dataclass(frozen=True, slots=True)
class Row:
    """A published tool with its live version. `granted` is true where no grant is needed."""

    id: UUID
    tenant_id: UUID
    name: str
    number: int
    snapshot: Mapping[str, Any]
    granted: bool


def load_toolbox(tenant_id: UUID) -> Toolbox:
    """Read and compile a tenant's published tools: one query."""
    rows = _PUBLISHED.filter(tenant=tenant_id)
    return toolbox_of(serve(Row(*row)) for row in rows)


def rows_of(tenants: QuerySet[Tenant]) -> Iterator[Row]:
    """The published tools of many tenants, read in chunks, tenant by tenant."""
    rows = _PUBLISHED.filter(tenant__in=tenants).order_by("tenant_id", "name")
    return (Row(*row) for row in rows.iterator(READ_AT_ONCE))


def serve(row: Row) -> ToolSnapshot | ToolProblem:
    """The row compiled, or why it cannot be. Raises nothing: each tool fails alone."""
    try:
        return _compile(row)
    except (KindError, NotServableError) as error:
        return ToolProblem(row.id, row.tenant_id, row.name, str(error))
    except Exception as error:
        log.exception("a tool could not be loaded", extra={"tool": row.name})
        return ToolProblem(row.id, row.tenant_id, row.name, f"It could not be loaded: {error!r}")


def _compile(row: Row) -> ToolSnapshot:
    published = row.snapshot
    if not row.granted:
        raise NotServableError(["The function is no longer granted to the tenant."])
    ready = compiling.ready(published["kind"], published["config"])
    compiled, shape = ready.compiled, ready.shape
    face = Face(row.name, published["title"], published["description"], published["icons"])
    listing = compiling.listing_of(compiled, face)
    limit = published["time_limit_seconds"]
    return ToolSnapshot(
        id=row.id,
        name=row.name,
        version=compiling.label(row.number, ready.digest),
        scopes=frozenset(published["scopes"]),
        listing=listing.wire,
        encoded=listing.encoded,
        param_headers=shape.param_headers,
        input_validator=shape.input_validator,
        output_validator=shape.output_validator,
        input_redactor=shape.input_redactor,
        output_redactor=shape.output_redactor,
        program=compiled.program,
        annotations=compiled.annotations,
        read_only=compiled.annotations.get("readOnlyHint") is True,
        idempotent=compiled.annotations.get("idempotentHint") is True,
        time_limit=compiled.time_limit if limit is None else limit,
        requires=tuple(compiled.requires),
    )
