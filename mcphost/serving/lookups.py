"""Look up tokens, tenants and the primitives visible to a caller: from memory, or by one query."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from mcphost.catalogue import selectors as catalogue
from mcphost.catalogue.selectors import (
    Offering,
    PrimitiveProblem,
    PromptSnapshot,
    ReadAt,
    Snapshot,
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
from mcphost.protocol.uri_templates import UriTemplate
from mcphost.protocol.uris import normalize, percent_encoded
from mcphost.serving.database import in_database, in_database_unauthenticated
from mcphost.tenants import selectors as tenants
from mcphost.tenants.roles import Audience
from mcphost.tenants.selectors import TenantSnapshot
from mcphost.vault.secrets import selectors as secrets
from mcphost.vault.secrets.values import UsableSecret


async def authenticated(bearer: str, slug: str, now: datetime) -> Authenticated | None:
    """The principal of a bearer token at the MCP endpoint of `slug`; None if it is not valid."""
    cached = identity.cached(bearer, Audience.MCP, slug, now)
    if cached is not MISS:
        return cached
    return await in_database_unauthenticated(identity.load, bearer, Audience.MCP, slug, now)


async def public_tenant(slug: str) -> TenantSnapshot | None:
    """The open tenant of that slug, if it allows anonymous callers."""
    cached = tenants.cached_public_tenant(slug)
    return cached if cached is not MISS else await in_database(tenants.public_tenant, slug)


async def tenant(tenant_id: UUID) -> TenantSnapshot | None:
    cached = tenants.cached_tenant(tenant_id)
    return cached if cached is not MISS else await in_database(tenants.tenant, tenant_id)


async def secret(tenant_id: UUID, name: str) -> UsableSecret | None:
    """A tenant's secret, for use; None if it has none of this name. Raises VaultError."""
    cached = secrets.cached_secret(tenant_id, name)
    return cached if cached is not MISS else await in_database(secrets.load_secret, tenant_id, name)


async def values_to_mask(tenant_id: UUID) -> tuple[str, ...]:
    """The values of all of a tenant's secrets, and those that they had. Raises VaultError."""
    cached = secrets.cached_values_to_mask(tenant_id)
    return (
        cached if cached is not MISS else await in_database(secrets.load_values_to_mask, tenant_id)
    )


async def offering(tenant_id: UUID) -> Offering:
    """The current offering of the tenant."""
    cached = catalogue.cached_offering(tenant_id)
    return cached if cached is not MISS else await in_database(catalogue.offering, tenant_id)


Scopes = frozenset[str]


def tool(offering: Offering, name: str, scopes: Scopes) -> ToolSnapshot | None:
    snapshot = offering.tools_by_name.get(name)
    return snapshot if snapshot is not None and snapshot.scopes <= scopes else None


def prompt(offering: Offering, name: str, scopes: Scopes) -> PromptSnapshot | None:
    snapshot = offering.prompts_by_name.get(name)
    return snapshot if snapshot is not None and snapshot.scopes <= scopes else None


def resource(offering: Offering, uri: str, scopes: Scopes) -> ReadAt | None:
    """The resource at a URI, or else the first template that the URI matches.

    Raises ValueError, with the reason, for a text that cannot be a resource's URI.
    """
    return offering.read_at(normalize(percent_encoded(uri)), scopes)


def template(offering: Offering, text: str, scopes: Scopes) -> TemplateSnapshot | None:
    """The template with exactly this text."""
    snapshot = offering.template(text)
    return snapshot if snapshot is not None and snapshot.scopes <= scopes else None


class CallTarget(NamedTuple):
    """What a request runs: the method, and the name or URI of the primitive."""

    method: str
    name: str


_NAMES: Final[Mapping[str, str]] = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
}
"""The methods that run a primitive, and the parameters that name it."""
_METHODS: Final[Mapping[PrimitiveType, str]] = {
    PrimitiveType.TOOL: "tools/call",
    PrimitiveType.PROMPT: "prompts/get",
    PrimitiveType.RESOURCE: "resources/read",
    PrimitiveType.TEMPLATE: "resources/read",
}


def target(method: str, params: Mapping[str, Any]) -> CallTarget | None:
    """What a request runs; None if its method runs no primitive."""
    param = _NAMES.get(method)
    return None if param is None else CallTarget(method, str(params.get(param, "")))


def primitive(
    offering: Offering, target: CallTarget, scopes: Scopes
) -> tuple[Snapshot, Mapping[str, str]] | None:
    """The primitive of a target, and the values of a template's variables; None if it is not served,
    or not visible to a caller with these scopes."""
    if target.method == "resources/read":
        with suppress(ValueError):
            return resource(offering, target.name, scopes)
        return None
    look_up = tool if target.method == "tools/call" else prompt
    served = look_up(offering, target.name, scopes)
    return None if served is None else (served, {})


def missing_function(offering: Offering, target: CallTarget, scopes: Scopes | None) -> str:
    """The function of a published primitive that no process is known to have; empty if something else
    is wrong with it, and if it is not published or not visible to a caller with these scopes."""
    for problem in offering.problems:
        if problem.missing_function and (scopes is None or problem.scopes <= scopes):
            with suppress(ValueError):
                if _is_at(problem, target):
                    return problem.missing_function
    return ""


def _is_at(problem: PrimitiveProblem, target: CallTarget) -> bool:
    """Whether the target is this primitive. Raises ValueError for what is no URI."""
    if target.method != _METHODS[problem.primitive_type]:
        return False
    if problem.primitive_type is PrimitiveType.RESOURCE:
        return normalize(target.name) == problem.uri
    if problem.primitive_type is PrimitiveType.TEMPLATE:
        return UriTemplate(problem.uri).match(normalize(target.name)) is not None
    return target.name == problem.name


def absent(offering: Offering, target: CallTarget, scopes: Scopes | None) -> ProtocolError | None:
    """The error for a published primitive whose function no process is known to have: UNAVAILABLE while
    one may come. None for all others; without `scopes`, for any caller."""
    function = missing_function(offering, target, scopes)
    if not function:
        return None
    if heartbeat.may_come(function):
        return unavailable(ABSENT)
    return ProtocolError(INTERNAL_ERROR, NO_PROCESS)
