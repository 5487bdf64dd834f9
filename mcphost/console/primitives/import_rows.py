"""The operations of a document on the page that imports them, beside the tools made of them."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import UUID

import orjson
from django.http import QueryDict
from pydantic import ValidationError as ConfigError

from mcphost.catalogue import selectors
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.imported import said_of
from mcphost.catalogue.rows import PrimitiveRow
from mcphost.catalogue.states import PrimitiveState
from mcphost.console.forms.kind_forms import HTTP
from mcphost.console.forms.prompts import plain
from mcphost.kinds.http.configs import HttpToolConfig
from mcphost.kinds.http.openapi_finding import FoundDocument, FoundOperation
from mcphost.kinds.http.openapi_merge import PartChange, Said, changes, merged
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.tenants.models import Tenant

MINE: Final = "mine"
THEIRS: Final = "theirs"
_MOST_SHOWN: Final = 600


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A change of the document on the page. `choice` is what is chosen of a conflict."""

    change: PartChange
    field: str
    choice: str

    @property
    def is_taken(self) -> bool:
        return not self.change.is_conflict or self.choice == THEIRS

    @property
    def is_open(self) -> bool:
        """Whether it waits for a choice."""
        return self.change.is_conflict and self.choice not in (MINE, THEIRS)

    @property
    def mine(self) -> str:
        return _shown(self.change.mine)

    @property
    def theirs(self) -> str:
        return _shown(self.change.theirs)


@dataclass
class OperationRow:
    """An operation on the page. `tool` is the one that was imported from it; `changes` are those of
    the document since then, None if they cannot be told."""

    found: FoundOperation
    name: str
    description: str
    chosen: bool
    tool: PrimitiveRow | None = None
    changes: Sequence[ChangeRow] | None = ()
    problems: Sequence[str] = ()

    @property
    def source(self) -> str:
        return self.found.operation.source

    @property
    def is_new(self) -> bool:
        """Whether a draft can be created of it."""
        return bool(self.found.url) and self.tool is None

    @property
    def can_change(self) -> bool:
        """Whether there are changes to be taken over."""
        return bool(self.tool and self.changes)

    @property
    def conflicts(self) -> int:
        return sum(row.change.is_conflict for row in self.changes or ())

    @property
    def is_open(self) -> bool:
        """Whether a conflict waits for a choice."""
        return any(row.is_open for row in self.changes or ())

    @cached_property
    def said(self) -> Said:
        """What the document says of it. Only for an operation with its configuration."""
        operation = self.found.operation
        description = operation.description or operation.source
        return Said(operation.title, description, operation.config or {})

    @cached_property
    def config(self) -> HttpToolConfig | None:
        """Its configuration; None if what is chosen does not fit together."""
        try:
            return HttpToolConfig.model_validate(self.fields.config)
        except ConfigError:
            return None

    @property
    def fields(self) -> PrimitiveFields:
        """The fields of its draft, or of its tool with the changes that are taken over."""
        said = self.said
        if self.tool is None:
            return PrimitiveFields(
                self.name, said.config, kind=HTTP, title=said.title, description=self.description
            )
        taken = [row.change for row in self.changes or () if row.is_taken]
        now = merged(_said(self.tool), said, taken)
        return replace(
            self.tool.fields, config=now.config, title=now.title, description=now.description
        )

    @property
    def hints(self) -> str:
        """What clients are told of it, in words."""
        if self.config is None:
            return ""
        told = self.config.annotations
        words = [
            "read-only" if told["readOnlyHint"] else "changes data",
            *(["destructive"] if told["destructiveHint"] else []),
            *(["may be repeated"] if told["idempotentHint"] else []),
        ]
        return ", ".join(words)


@dataclass(frozen=True, slots=True)
class ImportedTools:
    """The tools of a tenant that were imported, by the host and the operation of each."""

    rows: Mapping[tuple[str, str], PrimitiveRow]
    said: Mapping[UUID, Mapping[str, Any]]

    @classmethod
    def of(cls, tenant: UUID) -> "ImportedTools":
        """Read them."""
        found = selectors.primitives(Tenant.objects.filter(pk=tenant), PrimitiveType.TOOL)
        rows = {
            _identity(row.fields.config["request"]["url"], row.fields.config["source"]): row
            for row in found
            if row.fields.kind == HTTP
            and row.fields.config.get("source")
            and row.state is not PrimitiveState.ARCHIVED
        }
        return cls(rows, said_of([row.id for row in rows.values()]))

    @property
    def sources(self) -> frozenset[str]:
        return frozenset(source for _, source in self.rows)

    def gone(self, document: FoundDocument) -> list[PrimitiveRow]:
        """Return the tools of the document's hosts whose operations it has no more."""
        hosts = {_host(each.url) for each in document.operations if each.url}
        return [
            row
            for (host, source), row in self.rows.items()
            if host in hosts and source not in document.sources
        ]


def rows_of(
    document: FoundDocument, tools: ImportedTools, sent: QueryDict
) -> tuple[OperationRow, ...]:
    """Return the operations to be shown, with what was typed and chosen."""
    wanted = frozenset(sent.getlist("chosen"))
    return tuple(
        _row(found, tools, sent, wanted)
        for found in document.operations
        if found.listed or found.operation.source in wanted
    )


def _row(
    found: FoundOperation, tools: ImportedTools, sent: QueryDict, wanted: frozenset[str]
) -> OperationRow:
    operation = found.operation
    name = sent.get(f"name-{found.number}", operation.name).strip()
    said = operation.description or operation.source
    description = plain(sent.get(f"description-{found.number}", said)).strip()
    row = OperationRow(found, name, description, operation.source in wanted)
    row.tool = tools.rows.get(_identity(found.url, operation.source)) if found.url else None
    if row.tool is not None:
        row.changes = _changes(row, tools.said.get(row.tool.id), sent)
    return row


def _changes(
    row: OperationRow, base: Mapping[str, Any] | None, sent: QueryDict
) -> Sequence[ChangeRow] | None:
    if row.tool is None:
        return ()
    try:
        found = changes(Said.of(base) if base else None, _said(row.tool), row.said)
    except ValueError:
        return None
    fields = [f"part-{row.found.number}-{_digest(each)}" for each in found]
    return [
        ChangeRow(each, field, sent.get(field, ""))
        for each, field in zip(found, fields, strict=True)
    ]


def _digest(change: PartChange) -> str:
    """Identify a change: what was chosen of another one must not count."""
    written = orjson.dumps([change.part, change.mine, change.theirs], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(written).hexdigest()[:16]


def _said(tool: PrimitiveRow) -> Said:
    return Said(tool.fields.title, tool.fields.description, tool.fields.config)


def _identity(url: str, source: str) -> tuple[str, str]:
    """Return the host and the operation: documents of two services may have the same paths."""
    return _host(url), source


def _host(url: str) -> str:
    return urlsplit(url).netloc


def _shown(value: Any) -> str:
    if value is None:
        return "(none)"
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
