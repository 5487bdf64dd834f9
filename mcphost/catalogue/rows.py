"""What the console sees of tools: frozen rows, one query for many."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from mcphost.catalogue.fields import OVERRIDES, ToolFields, working_copy
from mcphost.catalogue.models import Tool, ToolVersion
from mcphost.catalogue.states import State


@dataclass(frozen=True, slots=True)
class ToolRow:
    """A tool as operators see it.

    `fields` is the working copy. `version` labels what was published last, empty for a draft that
    never was; `edited` says that the working copy has moved on since.
    """

    id: UUID
    tenant_id: UUID
    tenant_slug: str
    fields: ToolFields
    state: State
    version: str
    edited: bool
    created_at: datetime
    updated_at: datetime

    @property
    def name(self) -> str:
        return self.fields.name


@dataclass(frozen=True, slots=True)
class VersionRow:
    """One publication: the operators' part (`fields.snapshot`), the code's (`fields.code`)."""

    id: UUID
    tool_id: UUID
    number: int
    label: str
    digest: str
    live: bool
    snapshot: Mapping[str, Any]
    code: Mapping[str, Any]
    published_by: str
    published_at: datetime


@dataclass(frozen=True, slots=True)
class FunctionRow:
    """A Python function, seen from one tenant. `known` is false when the code no longer has it."""

    reference: str
    label: str
    granted: bool
    known: bool


def tool_row(tool: Tool) -> ToolRow:
    """The row of a tool that was read with its tenant and its live version."""
    return ToolRow(
        id=tool.id,
        tenant_id=tool.tenant_id,
        tenant_slug=tool.tenant.slug,
        fields=working_copy(tool),
        state=State(tool.state),
        version=str(tool.live) if tool.live else "",
        edited=tool.live is not None and _differs(tool, tool.live.snapshot),
        created_at=tool.created_at,
        updated_at=tool.updated_at,
    )


def version_row(version: ToolVersion) -> VersionRow:
    """The row of a version that was read with its tool."""
    return VersionRow(
        id=version.id,
        tool_id=version.tool_id,
        number=version.number,
        label=str(version),
        digest=version.digest,
        live=version.tool.live_id == version.id,
        snapshot=version.snapshot,
        code=version.code,
        published_by=version.published_by,
        published_at=version.published_at,
    )


def _differs(tool: Tool, published: Mapping[str, Any]) -> bool:
    return any(getattr(tool, name) != published[name] for name in ("config", *OVERRIDES))
