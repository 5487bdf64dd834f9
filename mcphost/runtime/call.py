"""Who is calling, and what they asked for: frozen values that every room may hold."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

from mcphost.protocol.eras import Era


class Delivery(StrEnum):
    """How a call reached the platform, and so how its outcome is answered."""

    MODERN = "modern"
    LEGACY = "legacy"
    TASK = "task"
    PLAYGROUND = "playground"
    HOSTED = "hosted"


class PrincipalKind(StrEnum):
    """What the caller proved itself with."""

    ANONYMOUS = "anonymous"
    TOKEN = "token"  # noqa: S105 - a kind of credential, not one
    PERSON = "person"


@dataclass(frozen=True, slots=True)
class Principal:
    """Whoever makes a request of one tenant, with the rights it has there.

    `id` is stable for binding (an API token's id; empty for anonymous callers); `label` is for
    people. `scopes` are the credential's scopes cut down to what its owner may hold today;
    `expires_at` is when the credential ends by itself, None for never.
    """

    kind: PrincipalKind
    tenant: UUID
    id: str = ""
    label: str = ""
    scopes: frozenset[str] = frozenset()
    user_id: int | None = None
    token_id: str | None = None
    expires_at: datetime | None = None

    def may(self, scope: str) -> bool:
        return scope in self.scopes


class Client(NamedTuple):
    """What the client says of itself. Never identity: it is self-reported."""

    name: str = ""
    version: str = ""
    capabilities: Mapping[str, Any] = MappingProxyType({})

    def can(self, capability: str) -> bool:
        """Whether the client declared a capability, e.g. `"elicitation"` or `"elicitation.url"`.

        One that says nothing of modes means forms (spec: client/elicitation, Capabilities).
        """
        if capability == "elicitation.form" and self.capabilities.get("elicitation") == {}:
            return True
        node: Any = self.capabilities
        for step in capability.split("."):
            if not isinstance(node, Mapping) or step not in node:
                return False
            node = node[step]
        return True


class Call(NamedTuple):
    """One client request to a tool, prompt or resource, the same through all of its rounds.

    `id` names the call, `round` counts from 1. `target` is the tool's or prompt's name or the
    resource's URI; `version` is the version of what runs in this round.
    """

    id: UUID
    tenant: UUID
    principal: Principal
    method: str
    target: str
    arguments: Mapping[str, Any]
    client: Client
    revision: str
    era: Era
    delivery: Delivery
    round: int = 1
    trace_id: str = ""
    version: str = ""
