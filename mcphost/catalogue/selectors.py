"""Reads of the catalogue: offerings for serving, rows for the console."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import connection
from django.db.models import Case, Count, Q, QuerySet, When

from mcphost.catalogue import kinds, loading
from mcphost.catalogue.cache import FilledCache
from mcphost.catalogue.models import Grant, Primitive, PrimitiveVersion
from mcphost.catalogue.rows import (
    FunctionRow,
    FunctionUse,
    PrimitiveRow,
    SecretUse,
    VersionRow,
    primitive_row,
    version_row,
)
from mcphost.catalogue.snapshots import (
    Offering,
    PrimitiveProblem,
    PromptSnapshot,
    ReadAt,
    ResourceSnapshot,
    Snapshot,
    TemplateSnapshot,
    ToolSnapshot,
)
from mcphost.catalogue.states import PrimitiveState
from mcphost.feed.cache import MISS
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.protocol.clients import OfferedTool, client_warnings
from mcphost.tenants.models import Tenant

__all__ = [
    "FunctionRow",
    "Offering",
    "PrimitiveCounts",
    "PrimitiveFilter",
    "PrimitiveProblem",
    "PrimitiveRow",
    "PromptSnapshot",
    "ReadAt",
    "ResourceSnapshot",
    "SecretUse",
    "Snapshot",
    "TemplateSnapshot",
    "ToolSnapshot",
    "VersionRow",
    "cached_offering",
    "counts",
    "forget",
    "forget_all",
    "functions",
    "matching",
    "offering",
    "primitive",
    "primitive_page",
    "primitives",
    "problems",
    "problems_of",
    "published_functions",
    "published_uses",
    "refusals_of",
    "secret_uses",
    "target_names",
    "target_times",
    "version",
    "version_page",
    "versions",
    "working_scopes",
]

PrimitiveCounts = Mapping[tuple[PrimitiveType, PrimitiveState], int]
"""Numbers of primitives by type and state."""

MAX_TENANTS = 2000

_offerings: FilledCache[UUID, Offering] = FilledCache(loading.load_offering, MAX_TENANTS)

cached_offering: Final = _offerings.peek
"""Return a tenant's offering if it is cached, else MISS. Makes no query: for the event loop."""


def offering(tenant_id: UUID) -> Offering:
    """Return all that a tenant serves; from memory if it is cached, else by one query.

    A tenant that offers nothing, or does not exist, has an empty offering. Inside a transaction
    nothing is cached, because the data that was read may still be rolled back.
    """
    cached = _offerings.peek(tenant_id)
    if cached is not MISS:
        return cached
    if connection.in_atomic_block:
        return loading.load_offering(tenant_id)
    return _offerings.get(tenant_id)


def forget(tenant_id: UUID) -> None:
    """Drop a tenant's cached offering, so that it is read again when needed."""
    _offerings.drop(tenant_id)


def forget_all() -> None:
    """Drop all cached offerings, for when it is unknown which changes were missed."""
    _offerings.clear()


def problems(tenant_id: UUID) -> tuple[PrimitiveProblem, ...]:
    """Return what the tenant has published and cannot be served, and why."""
    return offering(tenant_id).problems


def problems_of(tenants: QuerySet[Tenant]) -> Iterator[PrimitiveProblem]:
    """Yield the same for many tenants (see `tenants.access`), read in chunks, nothing cached."""
    for row in loading.rows_of(tenants):
        served = loading.serve(row)
        if isinstance(served, PrimitiveProblem):
            yield served


class ClientRefusal(NamedTuple):
    """What large clients refuse about a published tool, in a sentence."""

    tenant_id: UUID
    name: str
    message: str


def refusals_of(tenants: QuerySet[Tenant]) -> Iterator[ClientRefusal]:
    """Yield what large clients refuse about the published tools of many tenants, read in chunks."""
    for row in loading.rows_of(tenants):
        served = loading.serve(row) if row.primitive_type == PrimitiveType.TOOL else None
        if isinstance(served, Snapshot):
            tool = OfferedTool(served.name, served.listing["inputSchema"])
            for message in client_warnings(tool):
                yield ClientRefusal(row.tenant_id, served.name, message)


def primitives(
    tenants: QuerySet[Tenant], *primitive_types: PrimitiveType
) -> tuple[PrimitiveRow, ...]:
    """Return these tenants' primitives in every state, sorted by slug, type and name.

    For the tenants, see `tenants.access`. With `primitive_types`, only primitives of those types.
    """
    rows = Primitive.objects.filter(tenant__in=tenants).select_related("tenant", "live")
    if primitive_types:
        rows = rows.filter(primitive_type__in=primitive_types)
    order = list(PrimitiveType).index
    return tuple(
        sorted(
            map(primitive_row, rows),
            key=lambda row: (row.tenant_slug, order(row.primitive_type), row.name),
        )
    )


class PrimitiveFilter(NamedTuple):
    """Which primitives a list has: those of a name, in a state, with a text; empty and None mean all."""

    name: str = ""
    state: PrimitiveState | None = None
    text: str = ""


def primitive_page(
    tenant_id: UUID,
    primitive_type: PrimitiveType,
    narrow: PrimitiveFilter,
    *,
    after: str,
    limit: int,
) -> tuple[PrimitiveRow, ...]:
    """Return a tenant's primitives of a type, in every state, by name: at most `limit` after a name."""
    rows = Primitive.objects.filter(
        tenant=tenant_id, primitive_type=primitive_type, name__gt=after
    ).select_related("tenant", "live")
    if narrow.name:
        rows = rows.filter(name=narrow.name)
    if narrow.state is not None:
        rows = rows.filter(state=narrow.state)
    if narrow.text:
        rows = rows.filter(_has_text(narrow.text))
    return tuple(map(primitive_row, rows.order_by("name")[:limit]))


def target_times(tenants: frozenset[UUID] | None) -> Mapping[tuple[UUID, str], float]:
    """Return the target times for responses, in seconds, by tenant and name (or URI); without those
    that have none. None means all tenants."""
    rows = Primitive.objects.filter(target_seconds__isnull=False)
    if tenants is not None:
        rows = rows.filter(tenant__in=tenants)
    target_rows = rows.values_list("tenant_id", "name", "uri", "target_seconds")
    return {(tenant, uri or name): seconds or 0 for tenant, name, uri, seconds in target_rows}


def matching(tenants: QuerySet[Tenant], text: str, limit: int) -> tuple[PrimitiveRow, ...]:
    """Return these tenants' primitives whose name, title or URI has the text, the same name first."""
    rank = Case(When(name__iexact=text, then=0), When(name__istartswith=text, then=1), default=2)
    rows = Primitive.objects.filter(_has_text(text), tenant__in=tenants)
    rows = rows.select_related("tenant", "live")
    return tuple(map(primitive_row, rows.order_by(rank, "name", "id")[:limit]))


def _has_text(text: str) -> Q:
    return Q(name__icontains=text) | Q(title__icontains=text) | Q(uri__icontains=text)


def counts(tenants: Collection[UUID]) -> Mapping[UUID, PrimitiveCounts]:
    """Return how many primitives these tenants have, by tenant, type and state; without zeros."""
    rows = Primitive.objects.filter(tenant__in=tenants).order_by()
    primitive_counts: dict[UUID, dict[tuple[PrimitiveType, PrimitiveState], int]] = {}
    for tenant, primitive_type, state, count in rows.values_list(
        "tenant", "primitive_type", "state"
    ).annotate(Count("id")):
        primitive_counts.setdefault(tenant, {})[
            PrimitiveType(primitive_type), PrimitiveState(state)
        ] = count
    return primitive_counts


def target_names(tenant_id: UUID, *primitive_types: PrimitiveType) -> tuple[str, ...]:
    """Return what calls of a tenant's primitives name, URIs or names, sorted by type and name.

    In every state; with `primitive_types`, only primitives of those types.
    """
    rows = Primitive.objects.filter(
        tenant=tenant_id, primitive_type__in=primitive_types or PrimitiveType
    )
    order = list(PrimitiveType).index
    targets = sorted(
        rows.order_by().values_list("primitive_type", "name", "uri"),
        key=lambda row: (order(PrimitiveType(row[0])), row[1]),
    )
    return tuple(uri or name for _, name, uri in targets)


def working_scopes(tenant_id: UUID) -> frozenset[str]:
    """Return the scopes that the working copies of a tenant's primitives require."""
    rows = Primitive.objects.filter(tenant=tenant_id).order_by().values_list("scopes", flat=True)
    return frozenset(scope for scopes in rows for scope in scopes)


def primitive(primitive_id: UUID) -> PrimitiveRow | None:
    """Return one primitive, or None when there is no such row."""
    row = Primitive.objects.filter(pk=primitive_id).select_related("tenant", "live").first()
    return None if row is None else primitive_row(row)


def versions(primitive_id: UUID) -> tuple[VersionRow, ...]:
    """Return all publications of a primitive, newest first."""
    return tuple(map(version_row, _versions(primitive_id).order_by("-number")))


def version_page(primitive_id: UUID, *, before: int | None, limit: int) -> tuple[VersionRow, ...]:
    """Return publications of a primitive, newest first: at most `limit` before a number."""
    rows = _versions(primitive_id)
    if before is not None:
        rows = rows.filter(number__lt=before)
    return tuple(map(version_row, rows.order_by("-number")[:limit]))


def version(primitive_id: UUID, version_id: UUID) -> VersionRow | None:
    """Return one publication of a primitive, or None when it has none of that id."""
    row = _versions(primitive_id).filter(pk=version_id).first()
    return None if row is None else version_row(row)


def _versions(primitive_id: UUID) -> QuerySet[PrimitiveVersion]:
    return PrimitiveVersion.objects.filter(primitive=primitive_id).select_related("primitive")


def secret_uses(tenant_id: UUID) -> Mapping[str, Sequence[SecretUse]]:
    """Return the primitives that use each of a tenant's secrets, by the secret's name.

    Those count of which the working copy or the last published version names the secret.
    """
    uses: dict[str, list[SecretUse]] = {}
    rows = Primitive.objects.filter(tenant=tenant_id).select_related("live")
    for row in rows.order_by("primitive_type", "name"):
        live: Mapping[str, Any] = row.live.snapshot if row.live else {}
        served = frozenset(kinds.secrets_of(live.get("kind", ""), live.get("config", {})))
        for name in served.union(kinds.secrets_of(row.kind, row.config)):
            published = name in served and row.state == PrimitiveState.PUBLISHED
            use = SecretUse(
                row.id, PrimitiveType(row.primitive_type), row.name, name in served, published
            )
            uses.setdefault(name, []).append(use)
    return uses


def published_uses(tenant_id: UUID, secret: str) -> Sequence[str]:
    """Return the names of what is published and uses a secret."""
    return [use.name for use in secret_uses(tenant_id).get(secret, ()) if use.published]


def published_functions() -> frozenset[str]:
    """Return the functions that any tenant has published, by reference."""
    published = Primitive.objects.filter(state=PrimitiveState.PUBLISHED).exclude(live__function="")
    return frozenset(published.order_by().values_list("live__function", flat=True).distinct())


def functions(tenant_id: UUID) -> tuple[FunctionRow, ...]:
    """Return every function that is granted to a tenant or could be, by reference.

    A granted function that the code no longer has is included, with `known` false.
    """
    granted, labels = granted_references(tenant_id), dict(kinds.functions())
    uses = _function_uses(tenant_id)
    return tuple(
        FunctionRow(
            reference=reference,
            primitive_type=kinds.primitive_type_of(reference),
            label=labels.get(reference, reference),
            granted=reference in granted,
            in_code=reference in labels,
            registered_as=tuple(uses.get(reference, ())),
        )
        for reference in sorted(granted | labels.keys())
    )


def _function_uses(tenant_id: UUID) -> Mapping[str, Sequence[FunctionUse]]:
    """Return the primitives that run each function, by its reference, sorted by name."""
    uses: dict[str, list[FunctionUse]] = {}
    rows = Primitive.objects.filter(tenant=tenant_id, kind__in=kinds.GRANTED_BY_STAFF)
    for row in rows.order_by("name", "id").only("id", "primitive_type", "name", "kind", "config"):
        use = FunctionUse(row.id, PrimitiveType(row.primitive_type), row.name)
        uses.setdefault(kinds.function_of(row.kind, row.config), []).append(use)
    return uses


def granted_functions(tenant_id: UUID, primitive_type: PrimitiveType) -> Sequence[FunctionRow]:
    """Return the functions of a primitive type that are granted to a tenant, as `functions` does.

    The others, which may be hundreds, are not looked at.
    """
    labels = dict(kinds.functions())
    return [
        FunctionRow(
            reference, primitive_type, labels.get(reference, reference), True, reference in labels
        )
        for reference in sorted(granted_references(tenant_id))
        if kinds.primitive_type_of(reference) is primitive_type
    ]


def granted_references(tenant_id: UUID) -> frozenset[str]:
    """Return the references of the functions that are granted to a tenant."""
    return frozenset(Grant.objects.filter(tenant=tenant_id).values_list("function", flat=True))
