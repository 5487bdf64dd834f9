"""The caller (its user, token, scopes and tenant) and the call: frozen values that every package may use."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

from mcphost.protocol.revisions import Era


class Delivery(StrEnum):
    """How a call reached the platform, and so how its outcome is answered."""

    MODERN = "modern"
    LEGACY = "legacy"
    TASK = "task"
    PLAYGROUND = "playground"


class PrincipalKind(StrEnum):
    """The type of credential that the caller authenticated with."""

    ANONYMOUS = "anonymous"
    TOKEN = "token"  # noqa: S105 - a kind of credential, not one
    SERVICE = "service"
    PERSON = "person"


class CallUser(NamedTuple):
    """The person behind a call, as a member of its tenant.

    `id` is opaque, and the same for all credentials of the person; in another tenant, or after the
    person left and came back, it is another one. `name` is for people and may change.
    """

    id: UUID
    name: str


@dataclass(frozen=True, slots=True)
class Principal:
    """The authenticated caller of one tenant, with its rights there.

    `id` is stable for binding (an API token's id; empty for anonymous callers). `label` is for
    people, and names the token, its owner and its issuer. `user_id` is the account of the person
    whose credential it is, and `user` is that person; anonymous callers and service accounts have
    neither. `scopes` are the credential's scopes, limited to those that its owner may have today.
    `expires_at` is when the credential expires, None for never.
    """

    kind: PrincipalKind
    tenant: UUID
    id: str = ""
    label: str = ""
    scopes: frozenset[str] = frozenset()
    user_id: int | None = None
    token_id: str | None = None
    expires_at: datetime | None = None
    user: CallUser | None = None

    def may(self, scope: str) -> bool:
        return scope in self.scopes


class Client(NamedTuple):
    """The client's description of itself. Self-reported, so never identity."""

    name: str = ""
    version: str = ""
    capabilities: Mapping[str, Any] = MappingProxyType({})

    def can(self, capability: str) -> bool:
        """Whether the client declared a capability, e.g. `"elicitation"` or `"elicitation.url"`.

        An elicitation capability without modes means forms (spec: client/elicitation,
        Capabilities).
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
    """One client request to a tool, prompt or resource, the same in all of its rounds.

    `id` identifies the call, `round` counts from 1. `target` is the name of the tool or prompt, or
    the resource's URI. `version` is the version of the program that runs in this round.
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
