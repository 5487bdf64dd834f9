"""Authorization: which methods and primitives a caller may use."""

from typing import Literal, Protocol

from mcphost.protocol.errors import FORBIDDEN, ProtocolError
from mcphost.runtime.call import Principal
from mcphost.tenants.selectors import TenantSnapshot

LIST = "mcp:list"
CALL = "mcp:call"


def require_scope(principal: Principal, scope: str) -> None:
    """Raises ProtocolError (FORBIDDEN) with the scopes that the client should request.

    These are the missing one and those that it has: clients of 2025-11-25 request just what is listed
    (2025-11-25: basic/authorization, "Scope Challenge Handling").
    """
    if scope not in principal.scopes:
        message = f"This credential does not have the scope {scope}"
        raise ProtocolError(
            FORBIDDEN, message, {"scope": " ".join(sorted({scope, *principal.scopes}))}
        )


class Guarded(Protocol):
    """A tool, prompt, resource or template that requires scopes besides that of the method."""

    @property
    def scopes(self) -> frozenset[str]: ...


def visible(principal: Principal, primitive: Guarded) -> bool:
    """Whether the caller may know of the primitive. To other callers it does not exist."""
    return primitive.scopes <= principal.scopes


def cache_scope(tenant: TenantSnapshot, *, same_for_all: bool) -> Literal["public", "private"]:
    """`public` if the tenant is public and all callers get the same (spec: utilities/caching)."""
    return "public" if tenant.public and same_for_all else "private"
