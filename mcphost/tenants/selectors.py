"""Reads of tenants: frozen snapshots, cached until the change log reports a change of the tenant.

The `cached_…` functions never query the database, so they may run in the event loop; when they
return MISS, call the function without `cached_` in a thread.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from mcphost.feed.cache import MISS, Cache, Miss
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.models import Tenant

TENANTS_KEPT = 16_384


@dataclass(frozen=True, slots=True)
class TenantSnapshot:
    """A tenant as it was when it was read."""

    id: UUID
    slug: str
    title: str
    icon: str
    instructions: str
    allowed_origins: tuple[str, ...]
    outgoing_hosts: tuple[str, ...]
    public: bool
    metadata_documents_only: bool
    calls_per_minute: int | None
    concurrent_calls: int | None
    created_at: datetime
    closed_at: datetime | None

    @property
    def open(self) -> bool:
        return self.closed_at is None

    @property
    def fields(self) -> TenantFields:
        """The editable fields, from which an edit starts."""
        return TenantFields(
            title=self.title,
            icon=self.icon,
            instructions=self.instructions,
            allowed_origins=self.allowed_origins,
            outgoing_hosts=self.outgoing_hosts,
            public=self.public,
            metadata_documents_only=self.metadata_documents_only,
            calls_per_minute=self.calls_per_minute,
            concurrent_calls=self.concurrent_calls,
        )


PublicIndex = Mapping[str, TenantSnapshot]

_tenants: Cache[UUID, TenantSnapshot] = Cache(TENANTS_KEPT)
# All public, open tenants at once: the query never depends on the slug, so its duration does not
# reveal whether a slug is unknown, closed or private.
_public: Cache[Literal["index"], PublicIndex] = Cache(1)


def tenant(tenant_id: UUID) -> TenantSnapshot | None:
    """Return the tenant with an id, open or closed."""
    cached = _tenants.get(tenant_id)
    if cached is not MISS:
        return cached
    mark = _tenants.mark()
    row = Tenant.objects.filter(pk=tenant_id).first()
    if row is None:
        return None
    loaded = snapshot(row)
    _tenants.put(tenant_id, loaded, mark)
    return loaded


def cached_tenant(tenant_id: UUID) -> TenantSnapshot | Miss:
    return _tenants.get(tenant_id)


def public_tenant(slug: str) -> TenantSnapshot | None:
    """Return the open, public tenant with a slug; None for every other slug alike."""
    index = _public.get("index")
    if index is MISS:
        mark = _public.mark()
        index = {row.slug: snapshot(row) for row in Tenant.objects.open().filter(public=True)}
        _public.put("index", index, mark)
    return index.get(slug)


def cached_public_tenant(slug: str) -> TenantSnapshot | Miss | None:
    index = _public.get("index")
    return MISS if index is MISS else index.get(slug)


def slugs(tenants: Iterable[UUID | None]) -> Mapping[UUID | None, str]:
    """Return the slugs of these tenants by id; None, the platform, has none."""
    ids = {tenant_id for tenant_id in tenants if tenant_id is not None}
    if not ids:
        return {}
    return dict(Tenant.objects.filter(pk__in=ids).values_list("id", "slug"))


mark = _tenants.mark
"""Return a count of cache drops: while unchanged, results of `cached_tenant` are valid."""


def forget(tenant_id: UUID | None) -> None:
    """Drop a changed tenant (None: all), so that it is read again when needed."""
    _public.clear()
    if tenant_id is None:
        _tenants.clear()
    else:
        _tenants.forget(tenant_id)


def forget_all() -> None:
    forget(None)


def snapshot(row: Tenant) -> TenantSnapshot:
    """Convert a row to a frozen value."""
    return TenantSnapshot(
        id=row.id,
        slug=row.slug,
        title=row.title,
        icon=row.icon,
        instructions=row.instructions,
        allowed_origins=tuple(row.allowed_origins),
        outgoing_hosts=tuple(row.outgoing_hosts),
        public=row.public,
        metadata_documents_only=row.metadata_documents_only,
        calls_per_minute=row.calls_per_minute,
        concurrent_calls=row.concurrent_calls,
        created_at=row.created_at,
        closed_at=row.closed_at,
    )
