"""The operations of an OpenAPI document that is imported, beside the tools that were made of them."""

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, NamedTuple, Protocol
from uuid import UUID

import orjson
from pydantic import ValidationError as ConfigError

from mcphost.catalogue import kinds, selectors
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.imported import definitions_of
from mcphost.catalogue.rows import PrimitiveRow
from mcphost.catalogue.states import PrimitiveState
from mcphost.kinds.http.configs import HeaderConfig, HttpToolConfig
from mcphost.kinds.http.openapi_finding import FoundDocument, FoundOperation
from mcphost.kinds.http.openapi_merge import PartChange, ToolContent, changes, header_change, merged
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.tenants.models import Tenant

HTTP: Final = "http"
KEEP_TOOL: Final = "mine"
TAKE_DOCUMENT: Final = "theirs"
NO_CREDENTIALS: Final = "It is sent without credentials."
_MAX_SHOWN: Final = 600
_VARIABLE: Final = re.compile(r"(\.|;[^=/{}]*=)?\{[^{}]*\}")
"""A placeholder, and what stood before one of the styles `label` and `matrix`."""


@dataclass(frozen=True, slots=True)
class ChangeRow:
    """A change of the document. `field` identifies it, `choice` is what is chosen of a conflict."""

    change: PartChange
    field: str
    choice: str

    @property
    def is_taken(self) -> bool:
        return not self.change.is_conflict or self.choice == TAKE_DOCUMENT

    @property
    def is_open(self) -> bool:
        """Whether it waits for a choice."""
        return self.change.is_conflict and self.choice not in (KEEP_TOOL, TAKE_DOCUMENT)

    @property
    def tool_value(self) -> str:
        return _display_text(self.change.current)

    @property
    def document_value(self) -> str:
        return _display_text(self.change.incoming)


@dataclass
class OperationRow:
    """An operation. `tool` is the one that was imported from it; `changes` are those of
    the document since then, None if they cannot be told. `header` is what was chosen for operations
    without credentials."""

    found_operation: FoundOperation
    name: str
    description: str
    selected: bool
    tool: PrimitiveRow | None = None
    changes: Sequence[ChangeRow] | None = ()
    problems: list[str] = field(default_factory=list)
    header: HeaderConfig | None = None

    @property
    def source(self) -> str:
        return self.found_operation.operation.source

    @property
    def method(self) -> str:
        """The HTTP method, the first word of its source."""
        return self.source.partition(" ")[0]

    @property
    def path(self) -> str:
        """The path, the rest of its source."""
        return self.source.partition(" ")[2]

    @property
    def is_new(self) -> bool:
        """Whether a draft can be created of it."""
        return bool(self.found_operation.url) and self.tool is None

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
    def document_definition(self) -> ToolContent:
        """What the document says of it. Only for an operation with its configuration."""
        operation = self.found_operation.operation
        description = operation.description or operation.source
        return ToolContent(operation.title, description, operation.config or {})

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
        definition = self.document_definition
        if self.tool is None:
            config = definition.config
            if self.header is not None and (added := header_change(definition, self.header)):
                config = merged(definition, definition, [added]).config
            return PrimitiveFields(
                self.name, config, kind=HTTP, title=definition.title, description=self.description
            )
        accepted_changes = [row.change for row in self.changes or () if row.is_taken]
        now = merged(_tool_definition(self.tool), definition, accepted_changes)
        return replace(
            self.tool.fields, config=now.config, title=now.title, description=now.description
        )

    @property
    def secrets(self) -> Collection[str]:
        """The names of the secrets that its request has."""
        return kinds.secrets_of(HTTP, self.fields.config)

    @property
    def notes(self) -> Sequence[str]:
        """What the operator must know of it, in sentences."""
        operation = self.found_operation.operation
        bare = self.found_operation.url and not operation.credentials and self.header is None
        return [*operation.notes, *([NO_CREDENTIALS] if bare else [])]

    @property
    def hints(self) -> str:
        """What clients are told of it, in words."""
        if self.config is None:
            return ""
        annotations = self.config.annotations
        words = [
            "read-only" if annotations["readOnlyHint"] else "changes data",
            *(["destructive"] if annotations["destructiveHint"] else []),
            *(["may be repeated"] if annotations["idempotentHint"] else []),
        ]
        return ", ".join(words)


class Identity(NamedTuple):
    """What makes a tool that of an operation: the base of its address, which is the host and the path of
    the server, and the operation's method and path. One host may have several APIs, and an API several
    versions."""

    base: str
    source: str

    @classmethod
    def of(cls, url: str, source: str) -> "Identity":
        """Return the identity of an operation with this address, in which parameters have any names."""
        path = re.split(r"[?#]", source.partition(" ")[2], maxsplit=1)[0]
        return cls(_VARIABLE.sub("{}", url).removesuffix(_VARIABLE.sub("{}", path)), source)


@dataclass(frozen=True, slots=True)
class ImportedTools:
    """The tools of a tenant that were imported, by the address and the operation of each."""

    rows: Mapping[Identity, PrimitiveRow]
    imported_definitions: Mapping[UUID, Mapping[str, Any]]

    @classmethod
    def of(cls, tenant: UUID) -> "ImportedTools":
        """Read them."""
        tools = selectors.primitives(Tenant.objects.filter(pk=tenant), PrimitiveType.TOOL)
        rows = [
            row
            for row in tools
            if row.fields.kind == HTTP
            and row.fields.config.get("source")
            and row.state is not PrimitiveState.ARCHIVED
        ]
        definitions = definitions_of([row.id for row in rows])
        return cls({_identity_of(row, definitions.get(row.id)): row for row in rows}, definitions)

    @property
    def sources(self) -> frozenset[str]:
        return frozenset(identity.source for identity in self.rows)

    def removed_from(self, document: FoundDocument) -> list[PrimitiveRow]:
        """Return the tools of the document's API whose operations it has no more."""
        bases = {
            Identity.of(found_operation.url, found_operation.operation.source).base
            for found_operation in document.operations
            if found_operation.url
        }
        return [
            row
            for identity, row in self.rows.items()
            if identity.base in bases and identity.source not in document.sources
        ]


class ImportChoices(Protocol):
    """What was chosen for an import: which operations, and what becomes of each. `secrets` are those that
    were chosen for security schemes, `header` is for operations without credentials."""

    @property
    def sources(self) -> frozenset[str]: ...

    @property
    def secrets(self) -> frozenset[str]: ...

    @property
    def header(self) -> HeaderConfig | None: ...

    def name(self, operation: FoundOperation) -> str | None:
        """Return the name that was chosen for the tool; None for that of the document."""

    def description(self, operation: FoundOperation) -> str | None:
        """Return the description that was chosen; None for that of the document."""

    def resolution(self, operation: FoundOperation, field: str) -> str:
        """Return what was chosen of a conflict: KEEP_TOOL, TAKE_DOCUMENT, or an empty text."""


def rows_of(
    document: FoundDocument, tools: ImportedTools, choices: ImportChoices
) -> tuple[OperationRow, ...]:
    """Return the operations to be shown, with what was typed and chosen."""
    return tuple(
        _row(found_operation, tools, choices)
        for found_operation in document.operations
        if found_operation.listed or found_operation.operation.source in choices.sources
    )


def _row(
    found_operation: FoundOperation, tools: ImportedTools, choices: ImportChoices
) -> OperationRow:
    operation = found_operation.operation
    name, description = choices.name(found_operation), choices.description(found_operation)
    if name is None:
        name = operation.name
    if description is None:
        description = operation.description or operation.source
    is_selected = operation.source in choices.sources
    row = OperationRow(found_operation, name.strip(), description.strip(), is_selected)
    row.header = None if operation.credentials else choices.header
    row.tool = (
        tools.rows.get(Identity.of(found_operation.url, operation.source))
        if found_operation.url
        else None
    )
    if row.tool is not None:
        row.changes = _changes(row, tools.imported_definitions.get(row.tool.id), choices)
    return row


def _changes(
    row: OperationRow, base: Mapping[str, Any] | None, choices: ImportChoices
) -> Sequence[ChangeRow] | None:
    if row.tool is None:
        return ()
    tool_definition = _tool_definition(row.tool)
    try:
        row_changes = list(
            changes(
                ToolContent.of(base) if base else None,
                tool_definition,
                row.document_definition,
                choices.secrets,
            )
        )
        if row.header is not None and (added := header_change(tool_definition, row.header)):
            row_changes = [*(change for change in row_changes if change.part != added.part), added]
    except ValueError:
        return None
    fields = [f"part-{row.found_operation.number}-{_digest(change)}" for change in row_changes]
    return [
        ChangeRow(change, field, choices.resolution(row.found_operation, field))
        for change, field in zip(row_changes, fields, strict=True)
    ]


def _digest(change: PartChange) -> str:
    """Identify a change: what was chosen of another one must not count."""
    written = orjson.dumps(
        [change.part, change.current, change.incoming], option=orjson.OPT_SORT_KEYS
    )
    return hashlib.sha256(written).hexdigest()[:16]


def _tool_definition(tool: PrimitiveRow) -> ToolContent:
    return ToolContent(tool.fields.title, tool.fields.description, tool.fields.config)


def _identity_of(row: PrimitiveRow, imported_definition: Mapping[str, Any] | None) -> Identity:
    """Return the identity of a tool by its last import: the operator may have changed its address."""
    config = imported_definition["config"] if imported_definition else row.fields.config
    return Identity.of(config["request"]["url"], row.fields.config["source"])


def _display_text(value: Any) -> str:
    if value is None:
        return "(none)"
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
