"""Tools created from the operations of an OpenAPI document: previewed, and created or changed as one change."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, Self
from uuid import UUID

import orjson
from django.http import HttpResponse
from pydantic import AfterValidator, Field

from mcphost.api.call import ApiCall
from mcphost.api.endpoint import Endpoint
from mcphost.api.operations import ApiOperation, operation
from mcphost.api.problems import FieldFault, ProblemError, ProblemType, pointer_of
from mcphost.api.representations import Fields, Representation
from mcphost.catalogue.import_rows import (
    KEEP_TOOL,
    TAKE_DOCUMENT,
    ChangeRow,
    ImportedTools,
    OperationRow,
    rows_of,
)
from mcphost.catalogue.openapi_imports import (
    MAX_SELECTED,
    MissingSecret,
    apply_rows,
    check_rows,
    inspect_rows,
    is_whole_address,
    missing_secrets,
    unfit,
)
from mcphost.catalogue.rows import PrimitiveRow
from mcphost.catalogue.validation import Inspected
from mcphost.egress.client import EgressLimits
from mcphost.egress.errors import EgressError
from mcphost.kinds.http.configs import HeaderConfig
from mcphost.kinds.http.openapi_documents import MAX_BYTES, OpenApiError
from mcphost.kinds.http.openapi_finding import FoundDocument, FoundOperation, Reading, find
from mcphost.serving.execution.outgoing import fetch
from mcphost.serving.user_slots import IMPORTS
from mcphost.tenants.access import lock_open_tenant
from mcphost.tenants.roles import Permission
from mcphost.vault.secrets.selectors import tenant_secrets

DOCUMENT: Final = (
    "openapi: 3.1.0\nservers: [{url: https://api.example.com}]\n"
    "paths:\n  /orders: {get: {operationId: orders, description: Lists orders.}}\n"
)
EXAMPLE: Final = {"content": DOCUMENT, "operations": [{"source": "GET /orders", "name": "orders"}]}
FETCHING: Final = EgressLimits(
    total_seconds=30.0, response_bytes=MAX_BYTES, redirects=5, attempts=1
)
RETRY_SECONDS: Final = 2
_RESOLUTIONS: Final = {"tool": KEEP_TOOL, "document": TAKE_DOCUMENT}
_MOVED: Final = "The import is another one than that of the preview. Look at a new preview."


def _whole_address(url: str) -> str:
    if url and not is_whole_address(url):
        raise ValueError("Give a whole address, such as https://api.example.com/v1")
    return url


class ImportedOperationFields(Fields):
    """An operation to import. `conflicts` says whose parts stay where both the tool and the document
    have changed."""

    source: str = Field(description="Its method and path, as in the preview.")
    name: str | None = Field(None, description="Of a new tool; null: as the document names it.")
    description: str | None = Field(None, description="Of a new tool; null: the document's.")
    conflicts: Literal["tool", "document"] | None = None


class ImportHeaderFields(Fields):
    """A header for operations without credentials."""

    name: str
    value: str = Field(description="Such as `Bearer {secrets.api_token}`.")


class ImportFields(Fields):
    """A document, and what to import of it. Without `operations` the preview lists them."""

    content: str = Field("", description="OpenAPI 3 or Swagger 2.0, in JSON or YAML.")
    url: str = Field("", description="Where to fetch it instead, from a host that tools may call.")
    base_url: Annotated[str, AfterValidator(_whole_address)] = Field(
        "", description="Address of the API; empty: the first server of the document."
    )
    below: str = Field("", description="Only paths that begin with it.")
    header: ImportHeaderFields | None = None
    secrets: dict[str, str] = Field({}, description="Names of secrets, by security scheme.")
    operations: list[ImportedOperationFields] = Field([], max_length=MAX_SELECTED)


class ImportApplicationFields(ImportFields):
    """What to import, and the preview that was looked at."""

    digest: str = Field(
        min_length=1, description="`digest` of the preview: with another one, nothing is changed."
    )


class ImportChangeRepresentation(Representation):
    """A part of a tool that the document has changed since the last import."""

    part: str
    verb: str
    tool: str
    document: str
    conflict: bool
    accepted: bool

    @classmethod
    def of(cls, row: ChangeRow) -> Self:
        change = row.change
        return cls(
            part=change.label,
            verb=change.verb,
            tool=row.tool_value,
            document=row.document_value,
            conflict=change.is_conflict,
            accepted=row.is_taken,
        )


class ImportOperationRepresentation(Representation):
    """An operation of the document, and what becomes of it.

    `reason` says why an unsupported one cannot become a tool, `problems` why a selected one is refused.
    `config` is that of a selected one's tool.
    """

    source: str
    state: Literal["new", "changed", "imported", "differs", "unsupported"]
    selected: bool
    name: str
    title: str
    description: str
    url: str
    tool_id: UUID | None
    reason: str
    notes: Sequence[str]
    problems: Sequence[str]
    changes: Sequence[ImportChangeRepresentation]
    config: dict[str, Any] | None

    @classmethod
    def of(cls, row: OperationRow) -> Self:
        operation = row.found_operation.operation
        is_written = row.selected and _is_importable(row)
        problems = [*row.problems, *(["Choose what to keep: `conflicts`."] if row.is_open else [])]
        return cls(
            source=row.source,
            state=_state(row),
            selected=is_written,
            name=row.name if row.tool is None else row.tool.name,
            title=operation.title,
            description=row.description,
            url=row.found_operation.url,
            tool_id=None if row.tool is None else row.tool.id,
            reason=operation.problem,
            notes=row.notes,
            problems=problems if is_written else (),
            changes=[ImportChangeRepresentation.of(change) for change in row.changes or ()],
            config=dict(row.fields.config) if is_written else None,
        )


class ImportedToolRepresentation(Representation):
    """A tool that was made of an operation."""

    id: UUID
    name: str
    source: str

    @classmethod
    def of(cls, row: PrimitiveRow) -> Self:
        return cls(id=row.id, name=row.name, source=row.fields.config["source"])


class MissingSecretRepresentation(Representation):
    """A secret that calls will need, and the hosts that it must be allowed for."""

    name: str
    hosts: Sequence[str]

    @classmethod
    def of(cls, secret: MissingSecret) -> Self:
        return cls(name=secret.name, hosts=secret.hosts)


class ImportPreviewRepresentation(Representation):
    """What an import does. `ready`: it can be applied. `left_out` counts operations that are not listed:
    narrow `below`. `removed` are tools whose operations the document has no more; they stay."""

    digest: str
    ready: bool
    title: str
    notes: Sequence[str]
    operations: list[ImportOperationRepresentation]
    left_out: int
    missing_secrets: list[MissingSecretRepresentation]
    removed: list[ImportedToolRepresentation]


class ImportResultRepresentation(Representation):
    """The tools that an import created, as drafts, or changed."""

    tools: list[ImportedToolRepresentation]


@dataclass(frozen=True, slots=True)
class RequestedChoices:
    """What a request chose for its import."""

    fields: ImportFields
    header: HeaderConfig | None

    @property
    def sources(self) -> frozenset[str]:
        return frozenset(selection.source for selection in self.fields.operations)

    @property
    def secrets(self) -> frozenset[str]:
        return frozenset(self.fields.secrets.values())

    def name(self, operation: FoundOperation) -> str | None:
        selection = self._selection(operation)
        return None if selection is None else selection.name

    def description(self, operation: FoundOperation) -> str | None:
        selection = self._selection(operation)
        return None if selection is None else selection.description

    def resolution(self, operation: FoundOperation, field: str) -> str:
        selection = self._selection(operation)
        return _RESOLUTIONS.get(selection.conflicts or "", "") if selection is not None else ""

    def _selection(self, operation: FoundOperation) -> ImportedOperationFields | None:
        source = operation.operation.source
        return next(
            (selection for selection in self.fields.operations if selection.source == source), None
        )


@dataclass(frozen=True, slots=True)
class PreparedImport:
    """An import that was read and checked. Nothing is changed yet."""

    document: FoundDocument
    rows: Sequence[OperationRow]
    tools: ImportedTools
    inspected: Sequence[Inspected | None]
    secrets: Sequence[str]

    @property
    def selected(self) -> Sequence[OperationRow]:
        return _selected(self.rows)

    @property
    def is_ready(self) -> bool:
        rows = self.selected
        return not unfit(rows) and not any(row.problems or row.is_open for row in rows)

    @property
    def digest(self) -> str:
        """What will be written, and what it replaces."""
        written = [
            (row.source, row.name, row.description, row.fields.title, row.fields.config,
             row.tool and (str(row.tool.id), row.tool.fingerprint))
            for row in self.selected
        ]  # fmt: skip
        return hashlib.sha256(orjson.dumps(written)).hexdigest()[:32]

    def preview(self) -> ImportPreviewRepresentation:
        document, missing = self.document, missing_secrets(self.selected, self.secrets)
        return ImportPreviewRepresentation(
            digest=self.digest,
            ready=self.is_ready,
            title=document.title,
            notes=document.notes,
            operations=[ImportOperationRepresentation.of(row) for row in self.rows],
            left_out=document.left_out,
            missing_secrets=[MissingSecretRepresentation.of(secret) for secret in missing],
            removed=[
                ImportedToolRepresentation.of(row) for row in self.tools.removed_from(document)
            ],
        )

    def faults(self) -> Iterator[FieldFault]:
        """Yield why it cannot be applied."""
        if refusal := unfit(self.selected):
            yield FieldFault("/operations", "unfit", refusal)
        for row in self.selected:
            shown = ImportOperationRepresentation.of(row)
            for problem in shown.problems:
                yield FieldFault(pointer_of(["operations", row.source]), "invalid", problem)


class ImportPreview(Endpoint):
    """`/tenants/{slug}/imports/preview`."""

    @operation(
        ApiOperation(
            "Show what an OpenAPI document would make of its operations",
            Permission.EDIT_TOOLS,
            ImportPreviewRepresentation,
            body=ImportFields,
            example=EXAMPLE,
        )
    )
    def post(self, call: ApiCall, body: ImportFields) -> HttpResponse:
        prepared = _prepare(call, body)
        check_rows(call.tenant.pk, prepared.selected, prepared.inspected, call.actor)
        return call.show(prepared.preview())


class ImportApplication(Endpoint):
    """`/tenants/{slug}/imports/apply`."""

    @operation(
        ApiOperation(
            "Import operations of an OpenAPI document: all of those chosen or none",
            Permission.EDIT_TOOLS,
            ImportResultRepresentation,
            body=ImportApplicationFields,
            example={**EXAMPLE, "digest": "of the preview"},
        )
    )
    def post(self, call: ApiCall, body: ImportApplicationFields) -> HttpResponse:
        prepared = _prepare(call, body)
        if prepared.digest != body.digest:
            raise ProblemError(ProblemType.PRECONDITION, _MOVED)
        _check_ready(prepared)
        return call.perform(lambda: _apply(call, prepared))


def _apply(call: ApiCall, prepared: PreparedImport) -> ImportResultRepresentation:
    tenant, rows = call.tenant.pk, prepared.selected
    lock_open_tenant(tenant, call.actor, Permission.EDIT_TOOLS)
    if ImportedTools.of(tenant).rows != prepared.tools.rows:
        raise ProblemError(ProblemType.PRECONDITION, _MOVED)
    inspected = [fields for fields in prepared.inspected if fields is not None]
    if not apply_rows(tenant, rows, inspected, call.actor):
        _check_ready(prepared)
    sources = {row.source for row in rows}
    imported = ImportedTools.of(tenant).rows.values()
    return ImportResultRepresentation(
        tools=[
            ImportedToolRepresentation.of(row)
            for row in imported
            if row.fields.config["source"] in sources
        ]
    )


def _check_ready(prepared: PreparedImport) -> None:
    if not prepared.is_ready:
        message = "The import cannot be applied. Its preview says what is refused."
        raise ProblemError(ProblemType.INVALID, message, list(prepared.faults()))


def _prepare(call: ApiCall, body: ImportFields) -> PreparedImport:
    """Read the document, and check what was chosen of it, outside of transactions: it takes time."""
    tenant = call.tenant
    secrets = [row.name for row in tenant_secrets(tenant.pk)]
    _check_secrets(body.secrets, secrets)
    choices = RequestedChoices(body, _header(body))
    tools = ImportedTools.of(tenant.pk)
    with _slot(call):
        content, location = _document(call, body)
        how = Reading(
            base_url=body.base_url,
            location=location,
            below=body.below,
            secrets=body.secrets,
            sources=tools.sources | choices.sources,
        )
        document = find(content, how)
        rows = rows_of(document, tools, choices)
        _check_sources(body, rows)
        inspected = inspect_rows(tenant.pk, _selected(rows))
    return PreparedImport(document, rows, tools, inspected, secrets)


@contextmanager
def _slot(call: ApiCall) -> Iterator[None]:
    """Occupy one of the places for imports. Raises ProblemError if there is none."""
    with IMPORTS.of(call.credential.user.pk, call.tenant.pk) as busy:
        if busy:
            message = "Other imports are in progress. Try again when they have ended."
            retry = {"Retry-After": str(RETRY_SECONDS)}
            raise ProblemError(ProblemType.TOO_MANY, message, headers=retry)
        yield


def _document(call: ApiCall, body: ImportFields) -> tuple[bytes, str]:
    """Return the document and where it was fetched. Raises OpenApiError, ProblemError."""
    if bool(body.content) == bool(body.url):
        fault = FieldFault("/content", "document", "Send either `content` or `url`.")
        raise ProblemError(ProblemType.INVALID, fault.detail, [fault])
    if body.content:
        return body.content.encode("utf-8", "replace"), ""
    try:
        response = fetch(call.tenant.pk, call.tenant.outgoing_hosts, body.url, FETCHING)
    except EgressError as error:
        raise OpenApiError(str(error)) from None
    if response.status != 200:
        raise OpenApiError(f"The service responds with status {response.status}.")
    return response.body, response.url


def _header(body: ImportFields) -> HeaderConfig | None:
    """Return the header for operations without credentials. Raises ProblemError."""
    if body.header is None:
        return None
    try:
        return HeaderConfig(name=body.header.name, value=body.header.value)
    except ValueError:
        fault = FieldFault("/header", "header", "A request cannot have such a header.")
        raise ProblemError(ProblemType.INVALID, fault.detail, [fault]) from None


def _check_secrets(secrets: Mapping[str, str], stored: Sequence[str]) -> None:
    faults = [
        FieldFault(pointer_of(["secrets", scheme]), "unknown", "There is no such secret.")
        for scheme, name in secrets.items()
        if name not in stored
    ]
    if faults:
        raise ProblemError(ProblemType.INVALID, "Some secrets are not stored.", faults)


def _check_sources(body: ImportFields, rows: Sequence[OperationRow]) -> None:
    """Refuse operations that the document has not, and those of which nothing can be imported."""
    states = {row.source: row for row in rows}
    faults = [
        FieldFault(pointer_of(["operations", number, "source"]), "operation", detail)
        for number, selection in enumerate(body.operations)
        if (detail := _refusal(states.get(selection.source)))
    ]
    if faults:
        raise ProblemError(ProblemType.INVALID, "Some operations cannot be imported.", faults)


def _refusal(row: OperationRow | None) -> str:
    if row is None:
        return "The document has no such operation."
    if _is_importable(row):
        return ""
    return row.found_operation.operation.problem or "There is nothing to change."


def _is_importable(row: OperationRow) -> bool:
    return row.is_new or row.can_change


def _selected(rows: Sequence[OperationRow]) -> Sequence[OperationRow]:
    return [row for row in rows if row.selected and _is_importable(row)]


def _state(row: OperationRow) -> Literal["new", "changed", "imported", "differs", "unsupported"]:
    if row.tool is None:
        return "new" if row.is_new else "unsupported"
    if row.changes is None:
        return "differs"
    return "changed" if row.changes else "imported"
