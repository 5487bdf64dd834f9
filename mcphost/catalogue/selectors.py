"""What others may read of the catalogue: toolboxes for serving, rows for the console."""

from collections.abc import Iterator
from typing import Literal
from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from mcphost.catalogue import kinds, loading
from mcphost.catalogue.cache import FilledCache
from mcphost.catalogue.models import Grant, Tool, ToolVersion
from mcphost.catalogue.rows import FunctionRow, ToolRow, VersionRow, tool_row, version_row
from mcphost.catalogue.snapshots import Toolbox, ToolProblem, ToolSnapshot
from mcphost.feed.cache import MISS, Miss
from mcphost.tenants.models import Tenant

__all__ = [
    "FunctionRow",
    "ToolProblem",
    "ToolRow",
    "ToolSnapshot",
    "Toolbox",
    "VersionRow",
    "cached_toolbox",
    "forget",
    "forget_all",
    "functions",
    "problems",
    "problems_of",
    "tool",
    "toolbox",
    "tools",
    "versions",
]

MAX_TENANTS = 2000

_toolboxes: FilledCache[UUID, Toolbox] = FilledCache(loading.load_toolbox, MAX_TENANTS)


def toolbox(tenant_id: UUID) -> Toolbox:
    """All that a tenant serves; from memory when it is there, else by one query.

    A tenant without tools, or no tenant at all, has an empty toolbox. Inside a transaction nothing
    is kept, because what it read may yet be rolled back.
    """
    found = _toolboxes.peek(tenant_id)
    if found is not MISS:
        return found
    if connection.in_atomic_block:
        return loading.load_toolbox(tenant_id)
    return _toolboxes.get(tenant_id)


def cached_toolbox(tenant_id: UUID) -> Toolbox | Literal[Miss.MISS]:
    """The toolbox if it is in memory, else MISS. Never touches the database: for the event loop."""
    return _toolboxes.peek(tenant_id)


def forget(tenant_id: UUID) -> None:
    """Read this tenant's tools anew at the next need."""
    _toolboxes.drop(tenant_id)


def forget_all() -> None:
    """Read every tenant's tools anew: nobody knows what was missed."""
    _toolboxes.clear()


def problems(tenant_id: UUID) -> tuple[ToolProblem, ...]:
    """The tenant's published tools that cannot be served, and why."""
    return toolbox(tenant_id).problems


def problems_of(tenants: QuerySet[Tenant]) -> Iterator[ToolProblem]:
    """The same for many tenants (see `tenants.access`), read in chunks, nothing kept."""
    for row in loading.rows_of(tenants):
        served = loading.serve(row)
        if isinstance(served, ToolProblem):
            yield served


def tools(tenants: QuerySet[Tenant]) -> tuple[ToolRow, ...]:
    """The tools of these tenants (see `tenants.access`) in every state, by slug and name."""
    rows = Tool.objects.filter(tenant__in=tenants).select_related("tenant", "live")
    return tuple(sorted(map(tool_row, rows), key=lambda row: (row.tenant_slug, row.name)))


def tool(tool_id: UUID) -> ToolRow | None:
    """One tool, or None when there is no such row."""
    row = Tool.objects.filter(pk=tool_id).select_related("tenant", "live").first()
    return None if row is None else tool_row(row)


def versions(tool_id: UUID) -> tuple[VersionRow, ...]:
    """Every publication of a tool, the newest first."""
    rows = ToolVersion.objects.filter(tool=tool_id).select_related("tool").order_by("-number")
    return tuple(map(version_row, rows))


def functions(tenant_id: UUID) -> tuple[FunctionRow, ...]:
    """Every function that is granted to a tenant or could be, by reference.

    A granted function that the code no longer has is here too, with `known` false.
    """
    granted = set(Grant.objects.filter(tenant=tenant_id).values_list("function", flat=True))
    labels = dict(kinds.functions())
    return tuple(
        FunctionRow(
            reference=reference,
            label=labels.get(reference, reference),
            granted=reference in granted,
            known=reference in labels,
        )
        for reference in sorted(granted | labels.keys())
    )
