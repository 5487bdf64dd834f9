"""Look up tokens, tenants and the primitives visible to a caller: from memory, or by one query."""

from datetime import datetime
from uuid import UUID

from mcphost.catalogue import selectors as catalogue
from mcphost.catalogue.selectors import (
    Offering,
    PromptSnapshot,
    ReadAt,
    TemplateSnapshot,
    ToolSnapshot,
)
from mcphost.feed.cache import MISS
from mcphost.feed.nodes import heartbeat
from mcphost.identity import selectors as identity
from mcphost.identity.selectors import Authenticated
from mcphost.kinds.declarations import ABSENT, NO_PROCESS
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.protocol.errors import INTERNAL_ERROR, ProtocolError, unavailable
from mcphost.protocol.uris import normalize
from mcphost.serving.database import in_database, in_database_unauthenticated
from mcphost.tenants import selectors as tenants
from mcphost.tenants.roles import Audience
from mcphost.tenants.selectors import TenantSnapshot
from mcphost.vault.secrets import selectors as secrets
from mcphost.vault.secrets.usable import UsableSecret


async def authenticated(bearer: str, slug: str, now: datetime) -> Authenticated | None:
    """The principal of a bearer token at the MCP endpoint of `slug`; None if it is not valid."""
    known = identity.cached(bearer, Audience.MCP, slug, now)
    if known is not MISS:
        return known
    return await in_database_unauthenticated(identity.load, bearer, Audience.MCP, slug, now)


async def public_tenant(slug: str) -> TenantSnapshot | None:
    """The open tenant of that slug, if it allows anonymous callers."""
    known = tenants.cached_public_tenant(slug)
    return known if known is not MISS else await in_database(tenants.public_tenant, slug)


async def tenant(tenant_id: UUID) -> TenantSnapshot | None:
    known = tenants.cached_tenant(tenant_id)
    return known if known is not MISS else await in_database(tenants.tenant, tenant_id)


async def secret(tenant_id: UUID, name: str) -> UsableSecret | None:
    """A tenant's secret, for use; None if it has none of this name. Raises VaultError."""
    known = secrets.cached_secret(tenant_id, name)
    return known if known is not MISS else await in_database(secrets.load_secret, tenant_id, name)


async def values_to_mask(tenant_id: UUID) -> tuple[str, ...]:
    """The values of all of a tenant's secrets, and those that they had. Raises VaultError."""
    known = secrets.cached_values_to_mask(tenant_id)
    return known if known is not MISS else await in_database(secrets.load_values_to_mask, tenant_id)


async def offering(tenant_id: UUID) -> Offering:
    """The current offering of the tenant."""
    known = catalogue.cached_offering(tenant_id)
    return known if known is not MISS else await in_database(catalogue.offering, tenant_id)


Scopes = frozenset[str]


def tool(offering: Offering, name: str, scopes: Scopes) -> ToolSnapshot | None:
    found = offering.tools_by_name.get(name)
    return found if found is not None and found.scopes <= scopes else None


def prompt(offering: Offering, name: str, scopes: Scopes) -> PromptSnapshot | None:
    found = offering.prompts_by_name.get(name)
    return found if found is not None and found.scopes <= scopes else None


def absent(
    offering: Offering, sort: PrimitiveType, name: str, scopes: Scopes
) -> ProtocolError | None:
    """The error for a primitive that is published, but that no process can run now: it does not say
    that it is unknown. None if it is not published, or not visible to a caller with these scopes."""
    problem = offering.problem(sort, name)
    if problem is None or not problem.scopes <= scopes:
        return None
    if problem.function and heartbeat.may_come(problem.function):
        return unavailable(ABSENT)
    return ProtocolError(INTERNAL_ERROR, NO_PROCESS)


def resource(offering: Offering, uri: str, scopes: Scopes) -> ReadAt | None:
    """The resource at a URI, or else the first template that the URI matches.

    Raises ValueError, with the reason, for a text that cannot be a resource's URI.
    """
    return offering.read_at(normalize(uri), scopes)


def template(offering: Offering, text: str, scopes: Scopes) -> TemplateSnapshot | None:
    """The template with exactly this text."""
    found = offering.template(text)
    return found if found is not None and found.scopes <= scopes else None
