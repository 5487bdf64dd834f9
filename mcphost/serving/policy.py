"""The decision on a call: may this caller do this, here, now."""

from typing import Literal, Protocol

from mcphost.protocol.errors import FORBIDDEN, ProtocolError
from mcphost.runtime.call import Principal
from mcphost.tenants.selectors import TenantSnapshot

LIST = "mcp:list"
CALL = "mcp:call"
ANONYMOUS_SCOPES = frozenset({LIST, CALL})
"""What anybody may do at a public tenant."""


def require_scope(principal: Principal, scope: str) -> None:
    """Raises ProtocolError (FORBIDDEN) naming the scope that a client could ask its user for."""
    if scope not in principal.scopes:
        message = f"This credential does not have the scope {scope}"
        raise ProtocolError(FORBIDDEN, message, {"scope": scope})


class Guarded(Protocol):
    """A tool, prompt, resource or template, with scopes of its own beside those of the method."""

    @property
    def scopes(self) -> frozenset[str]: ...


def visible(principal: Principal, primitive: Guarded) -> bool:
    """Whether the caller may know of it at all. To others there is no such thing."""
    return primitive.scopes <= principal.scopes


def cache_scope(tenant: TenantSnapshot, *, same_for_all: bool) -> Literal["public", "private"]:
    """`public` only where anybody may ask and everybody gets the same (spec: utilities/caching)."""
    return "public" if tenant.public and same_for_all else "private"
