"""Load what a tenant serves: one query, then compile.

The published version has the operator's title, description, scopes, limits, icons and
configuration. Everything else comes from the code as it is now: schemas, annotations, and the texts
that the operator left to it. If a deployment changed the code's schemas since the publication, the
new ones are served, because they are what the function will accept. The digest in the version's
label is that of what is served.
"""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from mcphost.catalogue import compiling, kinds, remote_functions
from mcphost.catalogue.compiling import NotServableError, Ready
from mcphost.catalogue.kinds import KindError
from mcphost.catalogue.listing import ListingTexts
from mcphost.catalogue.models import Grant, Primitive
from mcphost.catalogue.ordering import Order, in_order
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
from mcphost.catalogue.states import PrimitiveState
from mcphost.kinds.kind import Compiled
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.protocol.uri_templates import UriTemplate
from mcphost.tenants.models import Tenant

READ_AT_ONCE = 500

log = logging.getLogger(__name__)

_GRANT = Grant.objects.filter(tenant=OuterRef("tenant"), function=OuterRef("live__function"))
# Built once, because building it takes Django longer than the database needs to answer it.
_PUBLISHED: QuerySet[Primitive, tuple[Any, ...]] = (
    Primitive.objects.filter(state=PrimitiveState.PUBLISHED)
    .annotate(granted=Q(live__function="") | Exists(_GRANT))
    .order_by()
    .values_list(
        "id",
        "tenant_id",
        "name",
        "primitive_type",
        "uri",
        "live__number",
        "live__snapshot",
        "granted",
        "live__config_order",
    )
)


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """A published primitive with its live version. `granted` is true where no grant is needed."""

    id: UUID
    tenant_id: UUID
    name: str
    primitive_type: str
    uri: str | None
    number: int
    snapshot: Mapping[str, Any]
    granted: bool
    order: Order = ()


def load_offering(tenant_id: UUID) -> Offering:
    """Read and compile what a tenant has published: one query."""
    rows = _PUBLISHED.filter(tenant=tenant_id)
    return offering_of(serve(PublishedRow(*row)) for row in rows)


def rows_of(tenants: QuerySet[Tenant]) -> Iterator[PublishedRow]:
    """Return what many tenants have published, read in chunks, tenant by tenant."""
    rows = _PUBLISHED.filter(tenant__in=tenants).order_by("tenant_id", "primitive_type", "name")
    return (PublishedRow(*row) for row in rows.iterator(READ_AT_ONCE))


def serve(row: PublishedRow) -> Snapshot | PrimitiveProblem:
    """Compile a row, or return why that fails. Raises nothing, so that each row fails alone."""
    try:
        return compile_row(row)
    except (KindError, NotServableError) as error:
        return _problem(row, str(error))
    except Exception as error:
        extra = {"primitive_type": row.primitive_type, "name_": row.name}
        log.exception("a published primitive could not be loaded", extra=extra)
        return _problem(row, f"It could not be loaded: {error!r}")


def _problem(row: PublishedRow, message: str) -> PrimitiveProblem:
    return PrimitiveProblem(
        row.id,
        row.tenant_id,
        PrimitiveType(row.primitive_type),
        row.name,
        message,
        frozenset(row.snapshot.get("scopes", ())),
        row.uri or "",
        _missing_function(row),
    )


def _missing_function(row: PublishedRow) -> str:
    function = kinds.function_of(row.snapshot["kind"], row.snapshot["config"])
    return function if row.granted and remote_functions.is_missing(function) else ""


def compile_row(row: PublishedRow) -> Snapshot:
    """Compile a row. Raises KindError and NotServableError."""
    published = row.snapshot
    if not row.granted:
        raise NotServableError(["The function is no longer granted to the tenant."])
    config = in_order(published["config"], row.order)
    ready, missing = _ready(PrimitiveType(row.primitive_type), published["kind"], config)
    _check_uri(row, ready.compiled)
    texts = ListingTexts(
        row.name, row.uri or "", published["title"], published["description"], published["icons"]
    )
    listing = compiling.listing_of(ready.compiled, texts)
    limit = published["time_limit_seconds"]
    answer_within = published.get("answer_within_seconds")  # absent from older versions
    return _snapshot(
        row,
        ready,
        {
            "id": row.id,
            "name": row.name,
            "kind": published["kind"],
            "version": compiling.label(
                row.number, compiling.publication_digest(ready, listing, published)
            ),
            "scopes": frozenset(published["scopes"]),
            "listing": listing.wire,
            "encoded": listing.encoded,
            "input_validator": ready.shape.input_validator,
            "input_redactor": ready.shape.input_redactor,
            "output_redactor": ready.shape.output_redactor,
            "program": ready.compiled.program,
            "time_limit": ready.compiled.time_limit if limit is None else limit,
            "requires": tuple(ready.compiled.requires),
            "answer_within": ready.compiled.answer_within
            if answer_within is None
            else answer_within,
            "claims": _claims(ready.compiled),
            "unasked": ready.compiled.unasked,
            "missing_function": missing,
        },
    )


def _ready(
    primitive_type: PrimitiveType, kind: str, config: Mapping[str, Any]
) -> tuple[Ready, str]:
    """Compile a configuration; with the function's reference if only another process can run it.

    Raises KindError and NotServableError.
    """
    try:
        return compiling.ready(primitive_type, kind, config), ""
    except KindError:
        compiled = remote_functions.compiled(kind, config, primitive_type)
        if compiled is None:
            raise
        return compiling.ready_of(compiled), kinds.function_of(kind, config)


def _claims(compiled: Compiled) -> bool:
    """Return whether rounds that take in an answer need a claim.

    The author decides. By default, tools do unless they are read-only or idempotent.
    """
    if compiled.claims is not None or compiled.primitive_type is not PrimitiveType.TOOL:
        return bool(compiled.claims)
    hints = compiled.annotations
    return hints.get("readOnlyHint") is not True and hints.get("idempotentHint") is not True


def _check_uri(row: PublishedRow, compiled: Compiled) -> None:
    """Refuse code whose URI is no longer the published one, by which clients know the primitive."""
    if row.uri and compiled.uri not in ("", row.uri):
        raise NotServableError(
            [f"It was published as {row.uri}, but the code now says {compiled.uri}."]
        )


def _snapshot(row: PublishedRow, ready: Ready, common: dict[str, Any]) -> Snapshot:
    """Return the snapshot of a primitive's type, with what all types have in common."""
    compiled = ready.compiled
    match compiled.primitive_type:
        case PrimitiveType.TOOL:
            return ToolSnapshot(
                **common,
                param_headers=ready.shape.param_headers,
                output_validator=ready.shape.output_validator,
                annotations=compiled.annotations,
                read_only=compiled.annotations.get("readOnlyHint") is True,
                idempotent=compiled.annotations.get("idempotentHint") is True,
                task_support=compiled.task_support,
                retries=compiled.retries,
            )
        case PrimitiveType.PROMPT:
            return PromptSnapshot(
                **common, arguments=compiled.arguments, completer=compiled.completer
            )
        case PrimitiveType.RESOURCE:
            return ResourceSnapshot(**common, uri=row.uri or "", mime_type=compiled.mime_type)
        case PrimitiveType.TEMPLATE:
            return TemplateSnapshot(
                **common,
                uri_template=UriTemplate(row.uri or ""),
                mime_type=compiled.mime_type,
                completer=compiled.completer,
            )
