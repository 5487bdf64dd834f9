"""The page that makes tools of the operations of an OpenAPI document.

The document is read twice: to list its operations, and to create drafts of the chosen ones. In
between the page carries it as compact JSON; nothing is stored, and nothing is fetched.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit
from uuid import UUID

import orjson
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpResponseBase, QueryDict
from django.shortcuts import redirect
from pydantic import ValidationError as ConfigError

from mcphost.audit.records import Actor
from mcphost.catalogue import selectors, services
from mcphost.catalogue.errors import Invalid
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.selectors import PrimitiveRow
from mcphost.console.base import SignedInRequest, actor, form_input, of_tenant, page_of, show
from mcphost.console.forms import forms
from mcphost.console.forms.json_texts import CODE, check_values
from mcphost.console.forms.uploads import in_words
from mcphost.console.primitives.form import HTTP
from mcphost.kinds.http.configs import HttpToolConfig
from mcphost.kinds.http.openapi import Credential, OpenApiError, Operation, operations, read
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission
from mcphost.vault.secrets.selectors import tenant_secrets

MOST_BYTES: Final = 1536 * 1024
"""The largest document: the page that lists its operations sends it back."""
MOST_LISTED: Final = 400
"""The most operations on a page: each has two fields, and Django accepts 1,000 in a form."""
CREATE: Final = "_create"
"""The name of the button that creates drafts."""
_SECRET: Final = re.compile(r"\{secrets\.[^{}]+\}")


class ImportForm(forms.ConsoleForm):
    """A document, and how to read it. `found` is the document, once it is valid."""

    file = forms.file("File", f"JSON or YAML of at most {in_words(MOST_BYTES)}.")
    document = forms.lines("Or paste it", "OpenAPI 3.0 or 3.1.", 16, **CODE)
    base_url = forms.text(
        "Address of the API",
        "Such as https://api.example.com/v1. Empty: the first server that the document names.",
        inputmode="url",
        spellcheck="false",
    )
    below = forms.text(
        "Only paths that begin with", "Such as /orders. Empty: all.", spellcheck="false"
    )

    found: Mapping[str, Any]

    @property
    def compact(self) -> str:
        """The document as the page carries it."""
        return orjson.dumps(self.found).decode()

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

    def clean(self) -> dict[str, Any]:
        given = super().clean() or self.cleaned_data
        upload = given.get("file")
        size = upload.size if upload else 0
        data = given.get("document", "").encode() if not upload or size > MOST_BYTES else b""
        field = "file" if upload else "document"
        if upload and size <= MOST_BYTES:
            data = upload.read()
        if max(size, len(data)) > MOST_BYTES:
            raise ValidationError({field: f"The document is larger than {in_words(MOST_BYTES)}."})
        if not data.strip():
            raise ValidationError({field: "Choose a file, or paste a document."})
        try:
            self.found = read(data)
        except OpenApiError as error:
            raise ValidationError({field: str(error)}) from None
        if len(self.compact.encode()) > MOST_BYTES:
            raise ValidationError({field: "With its aliases written out, it is too large."})
        return given


@dataclass(slots=True)
class OperationRow:
    """An operation on the page. `tool` is the one that was imported from it, `is_same` whether it
    still sends what the document says."""

    operation: Operation
    number: int
    name: str
    chosen: bool
    tool: PrimitiveRow | None
    is_same: bool
    problems: Sequence[str] = ()

    @property
    def is_new(self) -> bool:
        """Whether a draft can be created of it."""
        return self.operation.config is not None and self.tool is None

    @property
    def fields(self) -> PrimitiveFields:
        """The fields of its draft."""
        said = self.operation
        return PrimitiveFields(
            self.name,
            said.config or {},
            kind=HTTP,
            title=said.title,
            description=said.description or said.source,
        )


@dataclass(frozen=True, slots=True)
class Scheme:
    """A security scheme of the document, and the secret that was chosen for it."""

    credential: Credential
    field: str
    chosen: str


@of_tenant(Permission.EDIT_TOOLS)
def page(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Read a document, list its operations, and create drafts of the chosen ones."""
    form = ImportForm(*form_input(request))
    listed: list[OperationRow] = []
    schemes: list[Scheme] = []
    secrets = [row.name for row in tenant_secrets(tenant.pk)]
    if request.method == "POST" and form.is_valid():
        try:
            listed, schemes = _read(request.POST, form, tenant.pk, secrets)
        except (ValueError, RecursionError) as error:
            form.add_error(None, f"The document cannot be read: {error}"[:300])
    if listed and CREATE in request.POST:
        chosen = [each for each in listed if each.chosen and each.is_new]
        if chosen and _create(tenant.pk, chosen, actor(request)):
            count = f"{len(chosen)} draft{'s are' if len(chosen) > 1 else ' is'} created"
            messages.success(request, f"{count}. Clients see a tool once you publish it.")
            return redirect("admin:tools", tenant.slug)
        told = "Nothing was created. Correct what is marked below." if chosen else ""
        form.add_error(None, told or "Choose at least one operation.")
    return show(
        request,
        "primitives/import.html",
        "Import from OpenAPI",
        page_of(tenant, "tools", "Tools"),
        form=form,
        listed=listed[:MOST_LISTED],
        left_out=max(0, len(listed) - MOST_LISTED),
        new=sum(each.is_new for each in listed[:MOST_LISTED]),
        schemes=schemes,
        secrets=secrets,
    )


def _read(
    sent: QueryDict, form: ImportForm, tenant: UUID, secrets: Sequence[str]
) -> tuple[list[OperationRow], list[Scheme]]:
    """Return the operations and the security schemes of a document. Raises ValueError."""
    document, base_url = form.found, form.cleaned_data["base_url"]
    found = operations(document, base_url)
    used = {each.scheme: each for operation in found for each in operation.credentials}
    schemes = []
    for number, credential in enumerate(used.values()):
        field = f"secret-{number}"
        chosen = sent.get(field, "")
        # A secret of the scheme's name is used if no other is chosen.
        schemes.append(Scheme(credential, field, chosen if chosen in secrets else ""))
    chosen_secrets = {each.credential.scheme: each.chosen for each in schemes if each.chosen}
    if chosen_secrets:
        found = operations(document, base_url, chosen_secrets)
    below = form.cleaned_data["below"]
    known, wanted = _imported(tenant), set(sent.getlist("chosen"))
    listed = []
    for number, operation in enumerate(found):
        if operation.source.partition(" ")[2].startswith(below):
            tool = known.get(_identity(operation.config)) if operation.config else None
            is_same = tool is not None and _sends(tool.fields.config) == _sends(operation.config)
            name = sent.get(f"name-{number}", operation.name).strip()
            is_chosen = operation.source in wanted
            listed.append(OperationRow(operation, number, name, is_chosen, tool, is_same))
    if not listed:
        raise OpenApiError("it has no operations with such a path.")
    return listed, schemes


def _imported(tenant: UUID) -> Mapping[Any, PrimitiveRow]:
    """Return the tenant's tools that were imported, by what identifies their operations."""
    rows = selectors.primitives(Tenant.objects.filter(pk=tenant), PrimitiveType.TOOL)
    return {
        _identity(row.fields.config): row
        for row in rows
        if row.fields.kind == HTTP and row.fields.config.get("source")
    }


def _identity(config: Mapping[str, Any]) -> tuple[str, str]:
    """Return the host and the operation: documents of two services may have the same paths."""
    return urlsplit(config["request"]["url"]).netloc, config["source"]


def _sends(config: Mapping[str, Any] | None) -> str:
    """Return what a document decides of a configuration, whatever its secrets are called; empty if
    the configuration cannot be read."""
    try:
        read = HttpToolConfig.model_validate(config)
    except ConfigError:
        return ""
    sent = {"method", "url", "query", "headers", "body"}
    decided = read.model_dump(include={"input_schema": True, "request": sent})
    return _SECRET.sub("{secrets.}", orjson.dumps(decided, option=orjson.OPT_SORT_KEYS).decode())


def _create(tenant: UUID, chosen: Sequence[OperationRow], who: Actor) -> bool:
    """Create all drafts, or none, and then note the problems of each. Return whether it did."""
    with transaction.atomic():
        for each in chosen:
            try:
                check_values(each.fields.config)
                services.create(tenant, each.fields, who)
            except Invalid as refusal:
                each.problems = [text for said in refusal.problems.values() for text in said]
            except ValidationError as refusal:
                each.problems = refusal.messages
        wrong = any(each.problems for each in chosen)
        transaction.set_rollback(wrong)
    return not wrong
