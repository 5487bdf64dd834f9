"""What serving sees of a tenant's tools: frozen, compiled, shared between requests."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from mcphost.audit.redaction import Redactor
from mcphost.catalogue.redaction import ResultRedactor
from mcphost.protocol.schemas import ParamHeader
from mcphost.runtime.program import Program
from mcphost.runtime.schema import Validator


@dataclass(frozen=True, slots=True)
class ToolSnapshot:
    """One published tool, ready to be listed and called.

    `version` is `"<publications>+<8 hex digits>"`, the digits from the digest of both schemas and
    the author's version. `scopes` are the tool's own, beside `mcp:list` and `mcp:call`.
    `listing` is the tool on the wire (spec: server/tools, Tool), `encoded` the same as JSON; both
    are shared and never changed. `input_redactor` takes arguments, `output_redactor` the method's
    whole result. `time_limit` is in seconds for one round, None for the platform's.
    `requires` names client capabilities.
    """

    id: UUID
    name: str
    version: str
    scopes: frozenset[str]
    listing: Mapping[str, Any]
    encoded: bytes
    param_headers: tuple[ParamHeader, ...]
    input_validator: Validator
    output_validator: Validator | None
    input_redactor: Redactor
    output_redactor: ResultRedactor
    program: Program
    annotations: Mapping[str, Any]
    read_only: bool
    idempotent: bool
    time_limit: float | None
    requires: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToolProblem:
    """Why a published tool is not served."""

    tool_id: UUID
    tenant_id: UUID
    name: str
    message: str


@dataclass(frozen=True, slots=True)
class Toolbox:
    """All that one tenant serves, ordered by name, and what it would serve if it could."""

    tools: tuple[ToolSnapshot, ...] = ()
    problems: tuple[ToolProblem, ...] = ()
    by_name: Mapping[str, ToolSnapshot] = field(default_factory=dict, repr=False)

    def get(self, name: str) -> ToolSnapshot | None:
        return self.by_name.get(name)


def toolbox_of(served: Iterable[ToolSnapshot | ToolProblem]) -> Toolbox:
    """A toolbox in the order of names' code points, alike on every database and node."""
    ordered = sorted(served, key=lambda one: one.name)
    tools = tuple(one for one in ordered if isinstance(one, ToolSnapshot))
    return Toolbox(
        tools=tools,
        problems=tuple(one for one in ordered if isinstance(one, ToolProblem)),
        by_name={tool.name: tool for tool in tools},
    )
