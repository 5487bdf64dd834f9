"""The pages that make tools of the operations of an OpenAPI document: source, choice, preview.

The document is read in a process of its own for each page, and kept in between. Nothing is created
or changed before the last step, which is one transaction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django import forms as django_forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpResponseBase, QueryDict
from django.shortcuts import redirect
from pydantic import ValidationError as ConfigError

from mcphost.audit.records import Actor
from mcphost.catalogue import documents
from mcphost.catalogue.documents import DocumentOwner, StoredDocument
from mcphost.catalogue.import_rows import NO_CREDENTIALS, ImportedTools, OperationRow, rows_of
from mcphost.catalogue.openapi_imports import (
    MAX_SELECTED,
    apply_rows,
    inspect_rows,
    is_whole_address,
    missing_secrets,
    unfit,
)
from mcphost.console.base import SignedInRequest, actor, form_input, of_tenant, page_of, show
from mcphost.console.forms import forms
from mcphost.console.forms.json_texts import CODE
from mcphost.console.forms.prompts import plain
from mcphost.console.forms.uploads import in_words
from mcphost.egress.client import EgressLimits
from mcphost.egress.errors import EgressError
from mcphost.kinds.config_problems import problem_sentence
from mcphost.kinds.http.configs import HeaderConfig
from mcphost.kinds.http.openapi_documents import MAX_BYTES, OpenApiError
from mcphost.kinds.http.openapi_finding import (
    FindingBusyError,
    FoundDocument,
    FoundOperation,
    Reading,
    find,
)
from mcphost.kinds.http.openapi_security import Credential
from mcphost.sealing.tokens import SealError
from mcphost.serving.execution.outgoing import fetch
from mcphost.serving.user_slots import IMPORTS, Busy
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission
from mcphost.vault.errors import VaultError
from mcphost.vault.secrets.selectors import tenant_secrets

PREVIEW: Final = "_preview"
CREATE: Final = "_create"
"""The names of the buttons that go on."""
FETCHING: Final = EgressLimits(
    total_seconds=30.0, response_bytes=MAX_BYTES, redirects=5, attempts=1
)

_SECRET: Final = "secret:"  # noqa: S105 - how fields begin
_EXPIRED: Final = "The document is not kept any more. Give it again."
_BUSY: Final = {
    Busy.USER: "Another import of yours is in progress. Try again when it has ended.",
    Busy.TENANT: "Another user of this tenant imports a document now. Try again in a moment.",
    Busy.ALL: "Other tenants import documents now. Try again in a moment.",
}


class ImportForm(forms.ConsoleForm):
    """Where a document is, and how to read it. `kept` is its id after the first page."""

    url = forms.text(
        "Address of the document",
        "It is fetched only from hosts that this tenant's tools may call.",
        inputmode="url",
        spellcheck="false",
    )
    file = forms.file("Or a file", f"JSON or YAML of at most {in_words(MAX_BYTES)}.")
    document = forms.lines(
        "Or paste it",
        "OpenAPI 3 or Swagger 2.0, up to 2 MiB. Choose a file for a larger one.",
        4,
        **CODE,
    )
    base_url = forms.text(
        "Address of the API",
        "Such as https://api.example.com/v1. Empty: the first server that the document names.",
        inputmode="url",
        spellcheck="false",
    )
    below = forms.text(
        "Only paths that begin with", "Such as /orders. Empty: all.", spellcheck="false"
    )
    header_name = forms.text(
        "Header for operations without credentials",
        "Such as Authorization. Empty: none. Many documents do not say which credentials they need.",
        spellcheck="false",
    )
    header_value = forms.text(
        "Value of the header", "Such as Bearer {secrets.api_token}.", spellcheck="false"
    )
    kept = django_forms.UUIDField(required=False, widget=django_forms.HiddenInput())

    def clean_base_url(self) -> str:
        url: str = self.cleaned_data["base_url"]
        if url and not is_whole_address(url):
            raise ValidationError("Give a whole address, such as https://api.example.com/v1.")
        return url

    @property
    def header(self) -> HeaderConfig | None:
        """The header for operations without credentials. Raises ValueError for one that is invalid."""
        name, value = (self.cleaned_data.get(f"header_{part}", "") for part in ("name", "value"))
        return HeaderConfig(name=name, value=value) if name or value else None

    def clean(self) -> dict[str, Any]:
        submitted = super().clean() or self.cleaned_data
        try:
            self.header  # noqa: B018 - it checks the two fields
        except ConfigError as error:
            for problem in error.errors(include_url=False, include_input=False):
                field = f"header_{problem['loc'][0]}"
                self.add_error(field, problem_sentence(problem))
        if submitted.get("kept") or submitted.get("url"):
            return submitted
        upload = submitted.get("file")
        field = "file" if upload else "document"
        size = upload.size if upload else len(submitted.get("document", "").encode())
        if size > MAX_BYTES:
            raise ValidationError({field: f"The document is larger than {in_words(MAX_BYTES)}."})
        if not upload and not submitted.get("document", "").strip():
            raise ValidationError({field: "Give an address or a file, or paste a document."})
        return submitted

    @property
    def source(self) -> str:
        """The field that the document came from."""
        submitted = self.cleaned_data
        return next(name for name in ("kept", "url", "file", "document") if submitted.get(name))


@dataclass(frozen=True, slots=True)
class Scheme:
    """A security scheme of the document, and the secret that was chosen for it."""

    credential: Credential
    field: str
    selected_secret: str
    is_stored: bool
    """Whether there is a secret of the name that is used without a choice."""


@dataclass(frozen=True, slots=True)
class SubmittedChoices:
    """What was typed and chosen on the page."""

    sent: QueryDict
    secrets: frozenset[str]
    header: HeaderConfig | None

    @property
    def sources(self) -> frozenset[str]:
        return frozenset(self.sent.getlist("chosen"))

    def name(self, operation: FoundOperation) -> str | None:
        return self.sent.get(f"name-{operation.number}")

    def description(self, operation: FoundOperation) -> str | None:
        text = self.sent.get(f"description-{operation.number}")
        return None if text is None else plain(text)

    def resolution(self, operation: FoundOperation, field: str) -> str:
        return self.sent.get(field, "")


@dataclass(frozen=True, slots=True)
class SecretLink:
    """A missing secret, and the link to the form that stores it."""

    name: str
    hosts: Sequence[str]

    @property
    def query(self) -> str:
        """The query of the link."""
        return urlencode({"name": self.name, "hosts": "\n".join(self.hosts)})


@dataclass(frozen=True, slots=True)
class Import:
    """A document that was read for a page, and the tools that were imported before."""

    kept: UUID
    document: FoundDocument
    rows: Sequence[OperationRow]
    tools: ImportedTools
    schemes: Sequence[Scheme]

    @property
    def selected_rows(self) -> list[OperationRow]:
        return [row for row in self.rows if row.selected and (row.is_new or row.can_change)]

    @property
    def size(self) -> str:
        """What the chosen new tools add at most to each `tools/list`, once they are published."""
        size = sum(row.found_operation.size for row in self.selected_rows if row.tool is None)
        return in_words(-(-size // 1024) * 1024)


@of_tenant(Permission.EDIT_TOOLS)
def page(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Read a document, list its operations, preview the chosen ones, and create their drafts."""
    form = ImportForm(*form_input(request))
    secrets = [row.name for row in tenant_secrets(tenant.pk)]
    document_import = _open_import(request, tenant, form, secrets) if form.is_valid() else None
    selected_rows = document_import.selected_rows if document_import else []
    previews = bool(document_import) and (PREVIEW in request.POST or CREATE in request.POST)
    if document_import and previews and (refusal := unfit(selected_rows)):
        form.add_error(None, refusal)
        previews = False
    if document_import and previews and CREATE in request.POST:
        if any(row.is_open for row in selected_rows):
            form.add_error(None, "Choose what to keep where both have changed.")
        elif _apply(tenant.pk, selected_rows, actor(request)):
            documents.forget(DocumentOwner(tenant.pk, request.user.pk), document_import.kept)
            messages.success(request, _summary(selected_rows))
            return redirect("admin:tools", tenant.slug)
        else:
            form.add_error(None, "Nothing was created or changed. Correct what is marked below.")
    listed = (
        [row for row in document_import.rows if row.found_operation.listed]
        if document_import
        else []
    )
    return show(
        request,
        "primitives/import.html",
        "Import from OpenAPI",
        page_of(tenant, "tools", "Tools"),
        form=form,
        document_import=document_import,
        listed=listed,
        selectable=any(row.is_new or row.can_change for row in listed),
        no_credentials=NO_CREDENTIALS,
        all_bare=bool(listed) and all(NO_CREDENTIALS in row.notes for row in listed),
        removed=document_import.tools.removed_from(document_import.document)
        if document_import
        else [],
        selected_rows=selected_rows,
        previews=previews,
        new_tools=sum(row.tool is None for row in selected_rows),
        changed_tools=sum(row.tool is not None for row in selected_rows),
        secrets=secrets,
        missing=[SecretLink(*secret) for secret in missing_secrets(selected_rows, secrets)]
        if previews
        else (),
    )


def _open_import(
    request: SignedInRequest, tenant: Tenant, form: ImportForm, secrets: Sequence[str]
) -> Import | None:
    """Read the document; None if it cannot be read, with the reason in the form."""
    with IMPORTS.of(request.user.pk, tenant.pk) as busy:
        if busy:
            form.add_error(None, _BUSY[busy])
            return None
        try:
            return _read_import(request, tenant, form, secrets)
        except OpenApiError as error:
            form.add_error(None if form.source == "kept" else form.source, str(error))
        except FindingBusyError as busy:
            form.add_error(None, str(busy))
        except (VaultError, SealError):
            form.add_error(None, "The document cannot be kept: the keys cannot be read.")
    return None


def _read_import(
    request: SignedInRequest, tenant: Tenant, form: ImportForm, secrets: Sequence[str]
) -> Import | None:
    """Raises FindingBusyError, OpenApiError, SealError, VaultError."""
    owner = DocumentOwner(tenant.pk, request.user.pk)
    sent, kept = request.POST, form.cleaned_data["kept"]
    document = _document(form, tenant) if kept is None else documents.stored_document(owner, kept)
    if document is None:
        form.add_error(None, _EXPIRED)
        return None
    tools = ImportedTools.of(tenant.pk)
    secret_by_scheme = _chosen_secrets(sent, secrets)
    how = Reading(
        base_url=form.cleaned_data["base_url"],
        location=document.location,
        below=form.cleaned_data["below"],
        secrets=secret_by_scheme,
        sources=tools.sources.union(sent.getlist("chosen")[: 2 * MAX_SELECTED]),
    )
    found_document = find(document.content, how, kept=kept is not None)
    if not any(operation.listed for operation in found_document.operations):
        raise OpenApiError("It has no operations with such a path.")
    if kept is None:
        kept = documents.store_document(
            owner, StoredDocument(found_document.kept, document.location)
        )
    credentials = {
        credential.scheme: credential
        for operation in found_document.operations
        for credential in operation.operation.credentials
    }
    schemes = [
        Scheme(
            credential,
            f"{_SECRET}{scheme}",
            secret_by_scheme.get(scheme, ""),
            credential.secret in secrets,
        )
        for scheme, credential in credentials.items()
    ]
    choices = SubmittedChoices(sent, frozenset(secret_by_scheme.values()), form.header)
    return Import(kept, found_document, rows_of(found_document, tools, choices), tools, schemes)


def _document(form: ImportForm, tenant: Tenant) -> StoredDocument:
    """Return the document that was given. Raises OpenApiError."""
    submitted = form.cleaned_data
    if form.source == "file":
        return StoredDocument(submitted["file"].read(), "")
    if form.source == "document":
        return StoredDocument(submitted["document"].encode(), "")
    try:
        response = fetch(tenant.pk, tenant.outgoing_hosts, submitted["url"], FETCHING)
    except EgressError as error:
        raise OpenApiError(str(error)) from None
    if response.status != 200:
        raise OpenApiError(f"The service responds with status {response.status}.")
    return StoredDocument(response.body, response.url)


def _chosen_secrets(sent: QueryDict, secrets: Sequence[str]) -> Mapping[str, str]:
    """Return the chosen secrets by security scheme. Without a choice the document names them."""
    return {
        field.removeprefix(_SECRET): secret
        for field, secret in sent.items()
        if field.startswith(_SECRET) and isinstance(secret, str) and secret in secrets
    }


def _apply(tenant: UUID, rows: Sequence[OperationRow], actor: Actor) -> bool:
    return apply_rows(tenant, rows, inspect_rows(tenant, rows), actor)


def _summary(done: Sequence[OperationRow]) -> str:
    new = sum(row.is_new for row in done)
    changed = len(done) - new
    counts = [
        *([f"{new} draft{'s are' if new > 1 else ' is'} created"] if new else []),
        *([f"{changed} tool{'s are' if changed > 1 else ' is'} changed"] if changed else []),
    ]
    return f"{', '.join(counts)}. Clients see it once you publish it."
