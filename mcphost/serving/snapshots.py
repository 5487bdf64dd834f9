"""What the event loop reads of callers, tenants and tools: from memory, or by one hop."""

from datetime import datetime
from uuid import UUID

from mcphost.catalogue import selectors as catalogue
from mcphost.catalogue.selectors import Offering
from mcphost.feed.cache import MISS
from mcphost.identity import selectors as identity
from mcphost.identity.selectors import Authenticated
from mcphost.serving.hop import for_a_stranger, in_database
from mcphost.tenants import selectors as tenants
from mcphost.tenants.roles import Audience
from mcphost.tenants.selectors import TenantSnapshot


async def authenticated(bearer: str, slug: str, now: datetime) -> Authenticated | None:
    """Whom a bearer token stands for at the MCP endpoint of `slug`; None if it does not fit."""
    known = identity.cached(bearer, Audience.MCP, slug, now)
    if known is not MISS:
        return known
    return await for_a_stranger(identity.load, bearer, Audience.MCP, slug, now)


async def public_tenant(slug: str) -> TenantSnapshot | None:
    """The open tenant of that slug that lets anybody in."""
    known = tenants.cached_public_tenant(slug)
    return known if known is not MISS else await in_database(tenants.public_tenant, slug)


async def tenant(tenant_id: UUID) -> TenantSnapshot | None:
    known = tenants.cached_tenant(tenant_id)
    return known if known is not MISS else await in_database(tenants.tenant, tenant_id)


async def offering(tenant_id: UUID) -> Offering:
    """All that the tenant serves now."""
    known = catalogue.cached_offering(tenant_id)
    return known if known is not MISS else await in_database(catalogue.offering, tenant_id)
