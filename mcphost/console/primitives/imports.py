"""The pages that make tools of the operations of an OpenAPI document: source, choice, preview.

The document is read in a process of its own for each page, and kept in between. Nothing is created
or changed before the last step, which is one transaction.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode, urlsplit
from uuid import UUID

from django import forms as django_forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpResponseBase, QueryDict
from django.shortcuts import redirect
from pydantic import ValidationError as ConfigError

from mcphost.audit.records import Actor
from mcphost.catalogue import documents, imported, validation
from mcphost.catalogue.documents import DocumentOwner, StoredDocument
from mcphost.catalogue.errors import CatalogueError, Invalid
from mcphost.catalogue.validation import Inspected
from mcphost.console.base import SignedInRequest, actor, form_input, of_tenant, page_of, show
from mcphost.console.forms import forms
from mcphost.console.forms.json_texts import CODE, check_values
from mcphost.console.forms.uploads import in_words
from mcphost.console.primitives.admission import Busy, UserSlots
from mcphost.console.primitives.import_rows import (
    ImportChoices,
    ImportedTools,
    OperationRow,
    rows_of,
)
from mcphost.egress.client import EgressLimits
from mcphost.egress.errors import EgressError
from mcphost.kinds.http.configs import HeaderConfig
from mcphost.kinds.http.openapi_documents import MAX_BYTES, OpenApiError
from mcphost.kinds.http.openapi_finding import FindingBusyError, FoundDocument, Reading, find
from mcphost.kinds.http.openapi_security import Credential
from mcphost.sealing.tokens import SealError
from mcphost.serving.execution.outgoing import fetch
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission
from mcphost.vault.errors import VaultError
from mcphost.vault.secrets.selectors import tenant_secrets

MOST_CHOSEN: Final = 100
"""The most operations that are created or changed at once: each has several fields."""
MOST_AT_ONCE: Final = 2
"""The most imports in a process: each has a process of its own. A tenant has one."""
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

admission: Final = UserSlots(MOST_AT_ONCE)


class ImportForm(forms.ConsoleForm):
    """Where a document is, and how to read it. `kept` is its id after the first page."""

    url = forms.text(
        "Address of the document",
        "It is fetched as a tool of the tenant would: only from hosts that tools may call.",
        inputmode="url",
        spellcheck="false",
    )
    file = forms.file("Or a file", f"JSON or YAML of at most {in_words(MAX_BYTES)}.")
    document = forms.lines(
        "Or paste it", "OpenAPI 3.0 or 3.1, up to 2 MB. Choose a file for a larger one.", 12, **CODE
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
        try:
            parts = urlsplit(url)
            is_whole = parts.scheme in ("http", "https") and bool(parts.hostname)
        except ValueError:
            is_whole = False
        if url and not is_whole:
            raise ValidationError("Give a whole address, such as https://api.example.com/v1.")
        return url

    @property
    def header(self) -> HeaderConfig | None:
        """The header for operations without credentials. Raises ValueError for one that is invalid."""
        name, value = (self.cleaned_data.get(f"header_{part}", "") for part in ("name", "value"))
        return HeaderConfig(name=name, value=value) if name or value else None

    def clean(self) -> dict[str, Any]:
        given = super().clean() or self.cleaned_data
        try:
            self.header  # noqa: B018 - it checks the two fields
        except ConfigError as error:
            for problem in error.errors(include_url=False, include_input=False):
                field = f"header_{problem['loc'][0]}"
                self.add_error(field, problem["msg"].removeprefix("Value error, "))
        if given.get("kept") or given.get("url"):
            return given
        upload = given.get("file")
        field = "file" if upload else "document"
        size = upload.size if upload else len(given.get("document", "").encode())
        if size > MAX_BYTES:
            raise ValidationError({field: f"The document is larger than {in_words(MAX_BYTES)}."})
        if not upload and not given.get("document", "").strip():
            raise ValidationError({field: "Give an address or a file, or paste a document."})
        return given

    @property
    def source(self) -> str:
        """The field that the document came from."""
        given = self.cleaned_data
        return next(name for name in ("kept", "url", "file", "document") if given.get(name))


@dataclass(frozen=True, slots=True)
class Scheme:
    """A security scheme of the document, and the secret that was chosen for it."""

    credential: Credential
    field: str
    chosen: str
    is_stored: bool
    """Whether there is a secret of the name that is used without a choice."""


@dataclass(frozen=True, slots=True)
class MissingSecret:
    """A secret that is to be stored, and the hosts that it is for."""

    name: str
    hosts: Sequence[str]

    @property
    def query(self) -> str:
        """The query of the link to the form that stores it."""
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
    def chosen(self) -> list[OperationRow]:
        return [each for each in self.rows if each.chosen and (each.is_new or each.can_change)]

    def missing(self, secrets: Sequence[str]) -> Sequence[MissingSecret]:
        """Return the secrets that the chosen operations need and the tenant has not."""
        hosts: dict[str, set[str]] = {}
        for row in self.chosen:
            for name in row.secrets:
                if name not in secrets:
                    hosts.setdefault(name, set()).add(urlsplit(row.found.url).netloc)
        return [MissingSecret(name, sorted(of_name)) for name, of_name in hosts.items()]

    @property
    def size(self) -> str:
        """What the chosen new tools add to each `tools/list`."""
        size = sum(row.found.size for row in self.chosen if row.tool is None)
        return in_words(-(-size // 1024) * 1024)


@of_tenant(Permission.EDIT_TOOLS)
def page(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Read a document, list its operations, preview the chosen ones, and create their drafts."""
    form = ImportForm(*form_input(request))
    secrets = [row.name for row in tenant_secrets(tenant.pk)]
    found = _found(request, tenant, form, secrets) if form.is_valid() else None
    chosen = found.chosen if found else []
    previews = bool(found) and (PREVIEW in request.POST or CREATE in request.POST)
    if found and previews and (refusal := _unfit(chosen)):
        form.add_error(None, refusal)
        previews = False
    if found and previews and CREATE in request.POST:
        if any(each.is_open for each in chosen):
            form.add_error(None, "Choose what to keep where both have changed.")
        elif _apply(tenant.pk, chosen, actor(request)):
            documents.forget(DocumentOwner(tenant.pk, request.user.pk), found.kept)
            messages.success(request, _told(chosen))
            return redirect("admin:tools", tenant.slug)
        else:
            form.add_error(None, "Nothing was created or changed. Correct what is marked below.")
    return show(
        request,
        "primitives/import.html",
        "Import from OpenAPI",
        page_of(tenant, "tools", "Tools"),
        form=form,
        found=found,
        listed=[each for each in found.rows if each.found.listed] if found else [],
        gone=found.tools.gone(found.document) if found else [],
        chosen=chosen,
        previews=previews,
        secrets=secrets,
        missing=found.missing(secrets) if found and previews else (),
    )


def _found(
    request: SignedInRequest, tenant: Tenant, form: ImportForm, secrets: Sequence[str]
) -> Import | None:
    """Read the document; None if it cannot be read, with the reason in the form."""
    with admission.of(request.user.pk, tenant.pk) as busy:
        if busy:
            form.add_error(None, _BUSY[busy])
            return None
        try:
            return _read(request, tenant, form, secrets)
        except OpenApiError as error:
            form.add_error(None if form.source == "kept" else form.source, str(error))
        except FindingBusyError as busy:
            form.add_error(None, str(busy))
        except (VaultError, SealError):
            form.add_error(None, "The document cannot be kept: the keys cannot be read.")
    return None


def _read(
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
    chosen = _chosen_secrets(sent, secrets)
    how = Reading(
        base_url=form.cleaned_data["base_url"],
        location=document.location,
        below=form.cleaned_data["below"],
        secrets=chosen,
        sources=tools.sources.union(sent.getlist("chosen")[: 2 * MOST_CHOSEN]),
    )
    found = find(document.content, how, kept=kept is not None)
    if not any(each.listed for each in found.operations):
        raise OpenApiError("It has no operations with such a path.")
    if kept is None:
        kept = documents.store_document(owner, StoredDocument(found.kept, document.location))
    credentials = {
        one.scheme: one for each in found.operations for one in each.operation.credentials
    }
    schemes = [
        Scheme(one, f"{_SECRET}{scheme}", chosen.get(scheme, ""), one.secret in secrets)
        for scheme, one in credentials.items()
    ]
    choices = ImportChoices(sent, frozenset(chosen.values()), form.header)
    return Import(kept, found, rows_of(found, tools, choices), tools, schemes)


def _document(form: ImportForm, tenant: Tenant) -> StoredDocument:
    """Return the document that was given. Raises OpenApiError."""
    given = form.cleaned_data
    if form.source == "file":
        return StoredDocument(given["file"].read(), "")
    if form.source == "document":
        return StoredDocument(given["document"].encode(), "")
    try:
        response = fetch(tenant.pk, tenant.outgoing_hosts, given["url"], FETCHING)
    except EgressError as error:
        raise OpenApiError(str(error)) from None
    if response.status != 200:
        raise OpenApiError(f"The service responds with status {response.status}.")
    return StoredDocument(response.body, response.url)


def _chosen_secrets(sent: QueryDict, secrets: Sequence[str]) -> Mapping[str, str]:
    """Return the chosen secrets by security scheme. Without a choice the document names them."""
    return {
        field.removeprefix(_SECRET): chosen
        for field, chosen in sent.items()
        if field.startswith(_SECRET) and isinstance(chosen, str) and chosen in secrets
    }


def _unfit(chosen: Sequence[OperationRow]) -> str:
    """Return why these cannot be previewed; empty if they can."""
    if not chosen:
        return "Choose at least one operation."
    if len(chosen) > MOST_CHOSEN:
        return f"Choose at most {MOST_CHOSEN} operations at a time."
    return ""


def _apply(tenant: UUID, chosen: Sequence[OperationRow], who: Actor) -> bool:
    """Create and change all, or nothing, and then note the problems of each. Return whether it did."""
    inspected: list[tuple[OperationRow, Inspected]] = []
    for each in chosen:  # before the transaction, for it takes time
        with _noted(each):
            inspected.append((each, _inspected(tenant, each)))
    with transaction.atomic():
        for each, fields in inspected:
            with _noted(each):
                if each.tool is None:
                    imported.create(tenant, fields, each.said.stored, who)
                else:
                    imported.change(each.tool, fields, each.said.stored, who)
        wrong = any(each.problems for each in chosen)
        transaction.set_rollback(wrong)
    return not wrong


@contextmanager
def _noted(row: OperationRow) -> Iterator[None]:
    """Note the problems of an operation that is refused."""
    try:
        yield
    except Invalid as refusal:
        row.problems = [text for said in refusal.problems.values() for text in said]
    except CatalogueError as refusal:
        row.problems = [str(refusal)]
    except ValidationError as refusal:
        row.problems = refusal.messages


def _inspected(tenant: UUID, row: OperationRow) -> Inspected:
    """Raises Invalid, ValidationError."""
    fields = row.fields
    check_values(row.said.stored)
    check_values(fields.config)
    return validation.inspect(tenant, fields)


def _told(done: Sequence[OperationRow]) -> str:
    new = sum(each.is_new for each in done)
    changed = len(done) - new
    counts = [
        *([f"{new} draft{'s are' if new > 1 else ' is'} created"] if new else []),
        *([f"{changed} tool{'s are' if changed > 1 else ' is'} changed"] if changed else []),
    ]
    return f"{', '.join(counts)}. Clients see it once you publish it."
