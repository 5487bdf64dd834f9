"""Reads of tenants: frozen snapshots, kept until the feed says that a tenant changed.

`cached_…` never touches the database and so may run in the event loop; it answers MISS when the
plain function, in a thread, has to be asked.
"""

from collections.abc import Mapping
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
    public: bool
    calls_per_minute: int | None
    concurrent_calls: int | None
    created_at: datetime
    closed_at: datetime | None

    @property
    def open(self) -> bool:
        return self.closed_at is None

    @property
    def fields(self) -> TenantFields:
        """What of it can be edited, to start an edit from."""
        return TenantFields(
            title=self.title,
            icon=self.icon,
            instructions=self.instructions,
            allowed_origins=self.allowed_origins,
            public=self.public,
            calls_per_minute=self.calls_per_minute,
            concurrent_calls=self.concurrent_calls,
        )


PublicIndex = Mapping[str, TenantSnapshot]

_tenants: Cache[UUID, TenantSnapshot] = Cache(TENANTS_KEPT)
# All public, open tenants at once: what is asked of the database never depends on the slug, so a
# slug that is unknown, closed or private cannot be told from another by what it costs.
_public: Cache[Literal["index"], PublicIndex] = Cache(1)


def tenant(tenant_id: UUID) -> TenantSnapshot | None:
    """The tenant of that id, open or closed."""
    known = _tenants.get(tenant_id)
    if known is not MISS:
        return known
    mark = _tenants.mark()
    row = Tenant.objects.filter(pk=tenant_id).first()
    if row is None:
        return None
    found = snapshot(row)
    _tenants.put(tenant_id, found, mark)
    return found


def cached_tenant(tenant_id: UUID) -> TenantSnapshot | Miss:
    return _tenants.get(tenant_id)


def public_tenant(slug: str) -> TenantSnapshot | None:
    """The open tenant of that slug that lets anybody in; None for every other slug, alike."""
    index = _public.get("index")
    if index is MISS:
        mark = _public.mark()
        index = {row.slug: snapshot(row) for row in Tenant.objects.open().filter(public=True)}
        _public.put("index", index, mark)
    return index.get(slug)


def cached_public_tenant(slug: str) -> TenantSnapshot | Miss | None:
    index = _public.get("index")
    return MISS if index is MISS else index.get(slug)


def mark() -> int:
    """Counts what was forgotten of tenants: while it stays, what `cached_tenant` said holds."""
    return _tenants.mark()


def forget(tenant_id: UUID | None) -> None:
    """A tenant changed: read it anew when it is next asked for."""
    _public.clear()
    if tenant_id is None:
        _tenants.clear()
    else:
        _tenants.forget(tenant_id)


def forget_all() -> None:
    forget(None)


def snapshot(row: Tenant) -> TenantSnapshot:
    """A row as a frozen value."""
    return TenantSnapshot(
        id=row.id,
        slug=row.slug,
        title=row.title,
        icon=row.icon,
        instructions=row.instructions,
        allowed_origins=tuple(row.allowed_origins),
        public=row.public,
        calls_per_minute=row.calls_per_minute,
        concurrent_calls=row.concurrent_calls,
        created_at=row.created_at,
        closed_at=row.closed_at,
    )
