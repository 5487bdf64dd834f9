"""Reading what a tenant serves: one query, then compiled.

What decides is the version that was published (the operator's title, description, scopes, limits,
icons and configuration) and, for everything else, the code as it is now: schemas, annotations and
the texts that the operator left to it. When a deployment changed the code's schemas since the
publication, what is served are the new ones, because they are what the function will accept, and
the digest in the version's label is that of what is served.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from mcphost.catalogue import compiling
from mcphost.catalogue.compiling import NotServableError, Ready
from mcphost.catalogue.kinds import KindError
from mcphost.catalogue.listing import Face
from mcphost.catalogue.models import Grant, Primitive
from mcphost.catalogue.snapshots import (
    Offering,
    PrimitiveProblem,
    PromptSnapshot,
    ResourceSnapshot,
    Snapshot,
    TemplateSnapshot,
    ToolSnapshot,
    offering_of,
)
from mcphost.catalogue.states import State
from mcphost.kinds.kind import Compiled
from mcphost.kinds.sorts import Sort
from mcphost.protocol.uri_templates import UriTemplate
from mcphost.tenants.models import Tenant

READ_AT_ONCE = 500

log = logging.getLogger(__name__)

_GRANT = Grant.objects.filter(tenant=OuterRef("tenant"), function=OuterRef("live__function"))
# Built once, because building it takes Django longer than the database needs to answer it.
_PUBLISHED: QuerySet[Primitive, tuple[Any, ...]] = (
    Primitive.objects.filter(state=State.PUBLISHED)
    .annotate(granted=Q(live__function="") | Exists(_GRANT))
    .order_by()
    .values_list(
        "id", "tenant_id", "name", "sort", "uri", "live__number", "live__snapshot", "granted"
    )
)


@dataclass(frozen=True, slots=True)
class Row:
    """Something published, with its live version. `granted` is true where no grant is needed."""

    id: UUID
    tenant_id: UUID
    name: str
    sort: str
    uri: str | None
    number: int
    snapshot: Mapping[str, Any]
    granted: bool


def load_offering(tenant_id: UUID) -> Offering:
    """Read and compile what a tenant has published: one query."""
    rows = _PUBLISHED.filter(tenant=tenant_id)
    return offering_of(serve(Row(*row)) for row in rows)


def rows_of(tenants: QuerySet[Tenant]) -> Iterator[Row]:
    """What many tenants have published, read in chunks, tenant by tenant."""
    rows = _PUBLISHED.filter(tenant__in=tenants).order_by("tenant_id", "sort", "name")
    return (Row(*row) for row in rows.iterator(READ_AT_ONCE))


def serve(row: Row) -> Snapshot | PrimitiveProblem:
    """The row compiled, or why it cannot be. Raises nothing: each fails alone."""
    try:
        return _compile(row)
    except (KindError, NotServableError) as error:
        return _problem(row, str(error))
    except Exception as error:
        log.exception("something could not be loaded", extra={"sort": row.sort, "name_": row.name})
        return _problem(row, f"It could not be loaded: {error!r}")


def _problem(row: Row, message: str) -> PrimitiveProblem:
    return PrimitiveProblem(row.id, row.tenant_id, Sort(row.sort), row.name, message)


def _compile(row: Row) -> Snapshot:
    published = row.snapshot
    if not row.granted:
        raise NotServableError(["The function is no longer granted to the tenant."])
    ready = compiling.ready(Sort(row.sort), published["kind"], published["config"])
    _check_uri(row, ready.compiled)
    face = Face(
        row.name, row.uri or "", published["title"], published["description"], published["icons"]
    )
    listing = compiling.listing_of(ready.compiled, face)
    limit = published["time_limit_seconds"]
    return _FINISH[ready.compiled.sort](
        row,
        ready,
        {
            "id": row.id,
            "name": row.name,
            "kind": published["kind"],
            "version": compiling.label(row.number, ready.digest),
            "scopes": frozenset(published["scopes"]),
            "listing": listing.wire,
            "encoded": listing.encoded,
            "input_validator": ready.shape.input_validator,
            "input_redactor": ready.shape.input_redactor,
            "output_redactor": ready.shape.output_redactor,
            "program": ready.compiled.program,
            "time_limit": ready.compiled.time_limit if limit is None else limit,
            "requires": tuple(ready.compiled.requires),
            "answer_within": ready.compiled.answer_within,
            "claims": _claims(ready.compiled),
            "unasked": ready.compiled.unasked,
        },
    )


def _claims(compiled: Compiled) -> bool:
    """What its author says; else yes for what may change something each time that it runs."""
    if compiled.claims is not None or compiled.sort is not Sort.TOOL:
        return bool(compiled.claims)
    hints = compiled.annotations
    return hints.get("readOnlyHint") is not True and hints.get("idempotentHint") is not True


def _check_uri(row: Row, compiled: Compiled) -> None:
    """Clients know it by the URI that was published; the code may have moved on since."""
    if row.uri and compiled.uri not in ("", row.uri):
        raise NotServableError(
            [f"It was published as {row.uri}, but the code now says {compiled.uri}."]
        )


def _tool(row: Row, ready: Ready, common: dict[str, Any]) -> Snapshot:
    annotations = ready.compiled.annotations
    return ToolSnapshot(
        **common,
        param_headers=ready.shape.param_headers,
        output_validator=ready.shape.output_validator,
        annotations=annotations,
        read_only=annotations.get("readOnlyHint") is True,
        idempotent=annotations.get("idempotentHint") is True,
    )


def _prompt(row: Row, ready: Ready, common: dict[str, Any]) -> Snapshot:
    compiled = ready.compiled
    return PromptSnapshot(**common, arguments=compiled.arguments, completer=compiled.completer)


def _resource(row: Row, ready: Ready, common: dict[str, Any]) -> Snapshot:
    return ResourceSnapshot(**common, uri=row.uri or "", mime_type=ready.compiled.mime_type)


def _template(row: Row, ready: Ready, common: dict[str, Any]) -> Snapshot:
    compiled = ready.compiled
    return TemplateSnapshot(
        **common,
        uri_template=UriTemplate(row.uri or ""),
        mime_type=compiled.mime_type,
        completer=compiled.completer,
    )


_FINISH: Mapping[Sort, Callable[[Row, Ready, dict[str, Any]], Snapshot]] = {
    Sort.TOOL: _tool,
    Sort.PROMPT: _prompt,
    Sort.RESOURCE: _resource,
    Sort.TEMPLATE: _template,
}
