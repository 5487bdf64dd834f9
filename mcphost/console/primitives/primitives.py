"""Pages that are shared by all primitive types: tools, prompts, resources and templates.

Each type has a list, a form, a page for each primitive, and actions on its state. The URL says
which type is meant (see `urls`); there, the id of a primitive of another type is unknown.
"""

from collections.abc import Sequence
from textwrap import shorten
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponseBase, QueryDict
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_safe

from mcphost.audit.records import Actor
from mcphost.audit.summaries.figures import Period
from mcphost.catalogue import kinds, selectors, services, validation
from mcphost.catalogue.errors import StaleError, UnchangedError, UnknownError
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.selectors import PrimitiveRow
from mcphost.catalogue.states import PrimitiveState
from mcphost.console import return_links
from mcphost.console.base import (
    Crumb,
    SignedInRequest,
    actor,
    form_input,
    mcp_url,
    of_tenant,
    page_of,
    query_text,
    show,
)
from mcphost.console.dashboards.uses import counted, use_page, uses
from mcphost.console.forms.edits import BASED_ON, STATE, WHAT_DIFFERS, Difference
from mcphost.console.forms.kind_forms import PYTHON, kind_for, ways
from mcphost.console.forms.kind_parts import FunctionPart
from mcphost.console.periods import asked_period
from mcphost.console.primitive_words import WORDS, Words
from mcphost.console.primitives import gallery
from mcphost.console.primitives.details import differing_fields, notices_of, view_of
from mcphost.console.primitives.form import PrimitiveForm, author_texts
from mcphost.console.primitives.saved_comparisons import shown_calls
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.tenants.access import allowed
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

MAX_LIST_FOR_MODELS: Final = 64 * 1024
"""Bytes of `tools/list` that fill about a tenth of the context of a usual model."""

MAX_SUBTITLE: Final = 200
"""Characters of a description that stand below the name."""

EXAMPLE: Final = "example-"
"""How the fields of a preview begin; the name of an argument or a variable follows."""
PUBLISH = "_publish"
"""The name of the button that saves and publishes."""

_DISABLED = "It is disabled now: publishing serves it again. "
PUBLISHED = "{} is published. Clients can use it now."


@of_tenant(Permission.VIEW_TOOLS)
@require_safe
def listing(
    request: SignedInRequest, tenant: Tenant, primitive_type: PrimitiveType
) -> HttpResponseBase:
    """List the primitives of a type, with their state and why any is not served."""
    words = WORDS[primitive_type]
    search_text, state = request.GET.get("q", "").strip()[:64], request.GET.get("state", "")
    problems = {problem.primitive_id: problem.message for problem in selectors.problems(tenant.pk)}
    rows = selectors.primitives(Tenant.objects.filter(pk=tenant.pk), primitive_type)
    listed_rows = [
        (row, kinds.function_of(row.fields.kind, row.fields.config), problems.get(row.id, ""))
        for row in rows
        if (
            search_text.lower() in f"{row.name} {row.fields.title} {row.uri}".lower()
            and (row.state.value == state if state else row.state is not PrimitiveState.ARCHIVED)
        )
        or return_links.is_changed(request, row.id)
    ]
    reads = counted(primitive_type) and allowed(request.user, tenant, Permission.VIEW_RECORDS)
    used = uses(tenant, [row for row, _, _ in listed_rows], timezone.now()) if reads else None
    return show(
        request,
        "primitives/primitives.html",
        words.title,
        words=words,
        rows=listed_rows,
        uses=used,
        any_high=any(use.high for use in used.values()) if used else False,
        total=len(rows),
        current=sum(row.state is not PrimitiveState.ARCHIVED for row in rows),
        search_text=search_text,
        state=state,
        states=[primitive_state.value for primitive_state in PrimitiveState],
        kept=return_links.from_here(request),
        tool_list=_tool_list_size(tenant) if primitive_type is PrimitiveType.TOOL else None,
    )


class ToolListSize(NamedTuple):
    """How many tools `tools/list` has, and its bytes, all pages together."""

    tools: int
    size: int

    @property
    def is_large(self) -> bool:
        """Whether it fills much of the context of a model."""
        return self.size > MAX_LIST_FOR_MODELS


def _tool_list_size(tenant: Tenant) -> ToolListSize:
    sizes = [
        len(tool.encoded)
        for tool in selectors.offering(tenant.pk).everything
        if tool.primitive_type is PrimitiveType.TOOL
    ]
    return ToolListSize(len(sizes), sum(sizes))


@of_tenant(Permission.EDIT_TOOLS)
def add(
    request: SignedInRequest, tenant: Tenant, primitive_type: PrimitiveType
) -> HttpResponseBase:
    """Create a primitive."""
    posted = request.method == "POST"
    query = request.POST if posted else request.GET
    picked = None
    if primitive_type is PrimitiveType.TOOL and not posted:
        picked = gallery.picked(query, tenant.outgoing_hosts)
    kind = (
        picked.template.kind
        if picked
        else kind_for(tenant.pk, primitive_type, query.get("kind", ""))
    )
    before = picked.fields() if picked else _granted_function(query, primitive_type, kind)
    form = PrimitiveForm(WORDS[primitive_type], tenant.pk, kind, form_input(request), before)
    if posted and form.is_valid():
        fields, publish, author = form.primitive_fields(), PUBLISH in request.POST, actor(request)
        note = form.cleaned_data["note"]
        made = form.attempt(lambda: _create(tenant.pk, fields, author, publish=publish, note=note))
        if made is not None:
            return _saved(request, tenant, made, _done(made.name, publish=publish))
    elif posted:
        form.show_more_problems(lambda fields: validation.inspect_and_check(tenant.pk, fields))
    return _form_page(
        request, tenant, WORDS[primitive_type], form, **_gallery(primitive_type, query, picked)
    )


def _granted_function(
    query: QueryDict, primitive_type: PrimitiveType, kind: str
) -> PrimitiveFields | None:
    """Return what the form of a new primitive begins with if the URL names a function."""
    function = query_text(query, "function")
    if kind != PYTHON or not function:
        return None
    return PrimitiveFields("", {"function": function}, primitive_type, kind)


def _gallery(
    primitive_type: PrimitiveType, query: QueryDict, picked: gallery.Picked | None
) -> dict[str, Any]:
    """Return what the page of a new tool shows of the gallery: open if a link led to the examples."""
    if primitive_type is not PrimitiveType.TOOL:
        return {}
    return {
        "gallery": gallery.templates().values(),
        "gallery_open": "examples" in query,
        "gallery_form": gallery.FILL,
        "picked": picked,
    }


@of_tenant(Permission.EDIT_TOOLS)
def edit(
    request: SignedInRequest, tenant: Tenant, primitive_type: PrimitiveType, primitive_id: UUID
) -> HttpResponseBase:
    """Edit the working copy of a primitive."""
    row = row_of(tenant, primitive_type, primitive_id)
    form = PrimitiveForm(
        WORDS[primitive_type], tenant.pk, row.fields.kind, form_input(request), row.fields
    )
    if row.version:
        form.fix_names()
    now = row.fingerprint
    read = query_text(request.POST, BASED_ON) or now
    was = query_text(request.POST, STATE) or row.state.value
    conflict: Sequence[Difference] = ()
    if request.method == "POST" and form.is_valid():
        fields, publish, author = form.primitive_fields(), PUBLISH in request.POST, actor(request)
        note = form.cleaned_data["note"]
        try:
            saved = form.attempt(
                lambda: _update(
                    row, fields, author, publish=was if publish else None, note=note, based_on=read
                )
            )
        except UnknownError:
            raise Http404 from None  # another user deleted it meanwhile
        except StaleError as refusal:
            saved, conflict = None, differing_fields(row.fields, fields)
            disabled = _DISABLED if row.state is PrimitiveState.DISABLED else ""
            form.add_error(None, f"{refusal}. {disabled}{WHAT_DIFFERS}")
            was = row.state.value
        if saved is not None:
            return _saved(request, tenant, *saved)
    elif request.method == "POST":
        form.show_more_problems(
            lambda fields: validation.inspect_and_check(tenant.pk, fields, row.id)
        )
    # After a conflict has been shown, saving again replaces the other user's changes.
    based_on = now if conflict else read
    return _form_page(
        request,
        tenant,
        WORDS[primitive_type],
        form,
        row,
        conflict=conflict,
        based_on=based_on,
        was=was,
    )


@of_tenant(Permission.VIEW_TOOLS)
@require_safe
def detail(
    request: SignedInRequest, tenant: Tenant, primitive_type: PrimitiveType, primitive_id: UUID
) -> HttpResponseBase:
    """Show a primitive: what is served, what differs, an example request, and all versions."""
    row = row_of(tenant, primitive_type, primitive_id)
    period_choice = asked_period(request.GET, Period.WEEK)
    reads = counted(primitive_type) and allowed(request.user, tenant, Permission.VIEW_RECORDS)
    offer = view_of(row, mcp_url(request, tenant.slug), _chosen_values(request.GET))
    return show(
        request,
        "primitives/primitive.html",
        row.name,
        _list_of(tenant, WORDS[primitive_type]),
        framing=primitive_type is PrimitiveType.TOOL,
        at_row=f"row-{row.id}",
        words=WORDS[primitive_type],
        purpose=shorten(
            str(offer.listing.get("description") or row.fields.description),
            MAX_SUBTITLE,
            placeholder=" …",
        ),
        offer=offer,
        row=row,
        saved=shown_calls(row.id) if primitive_type is PrimitiveType.TOOL else (),
        period_choice=period_choice,
        use=use_page(tenant, row, period_choice, timezone.now()) if reads and row.version else None,
    )


def _chosen_values(query: QueryDict) -> dict[str, str]:
    """Return the values that the URL gives to arguments or variables, by name."""
    return {
        name.removeprefix(EXAMPLE): query_text(query, name)
        for name in query
        if name.startswith(EXAMPLE)
    }


def _create(
    tenant_id: UUID, fields: PrimitiveFields, author: Actor, *, publish: bool, note: str
) -> PrimitiveRow:
    inspected = validation.inspect_and_check(tenant_id, fields)
    with transaction.atomic():
        made = services.create_inspected(tenant_id, inspected, author)
        return services.publish(made.id, author, note=note) if publish else made


def _update(
    before: PrimitiveRow,
    fields: PrimitiveFields,
    author: Actor,
    *,
    publish: str | None,
    note: str,
    based_on: str,
) -> tuple[PrimitiveRow, str]:
    """Return the row, and a sentence that says what was done.

    `publish` is the state that the user saw, if the working copy is to be published too. One that is
    published already is only saved.
    """
    inspected = validation.inspect_and_check(before.tenant_id, fields, before.id)
    with transaction.atomic():
        saved = services.update_inspected(before.id, inspected, author, based_on=based_on)
        try:
            row = saved
            if publish is not None:
                row = services.publish(saved.id, author, note=note, was=publish)
        except UnchangedError as refusal:
            return saved, f"{saved.name} is saved. No new version was created: {refusal}"
    return row, _done(row.name, publish=publish is not None)


def _done(name: str, *, publish: bool) -> str:
    if publish:
        return PUBLISHED.format(name)
    return f"{name} is saved. Clients see the changes once you publish."


def _saved(
    request: SignedInRequest, tenant: Tenant, row: PrimitiveRow, done: str
) -> HttpResponseBase:
    messages.success(request, done)
    for notice in notices_of(row):
        messages.info(request, notice)
    return redirect(
        return_links.row_url(request, WORDS[row.primitive_type].detail, tenant.slug, row.id)
    )


def _form_page(
    request: SignedInRequest,
    tenant: Tenant,
    words: Words,
    form: PrimitiveForm,
    row: PrimitiveRow | None = None,
    **more: Any,
) -> HttpResponseBase:
    functions = form.part.functions if isinstance(form.part, FunctionPart) else None
    crumbs = [_list_of(tenant, words)]
    back = crumbs[0].url
    if row is not None:
        back = return_links.row_url(request, words.detail, tenant.slug, row.id)
        crumbs.append(Crumb(row.name, back))
    return show(
        request,
        "primitives/primitive_form.html",
        "Edit" if row is not None else f"New {words.singular}",
        *crumbs,
        framing=words.primitive_type is PrimitiveType.TOOL,
        at_row="" if row is None else f"row-{row.id}",
        words=words,
        form=form,
        row=row,
        back=back,
        ways=() if row is not None else ways(words, form.kind),
        needs_function=functions is not None and not functions,
        authors=author_texts(functions or ()),
        **more,
    )


def _list_of(tenant: Tenant, words: Words) -> Crumb:
    return page_of(tenant, words.listing.removeprefix("admin:"), words.title)


def row_of(tenant: Tenant, primitive_type: PrimitiveType, primitive_id: UUID) -> PrimitiveRow:
    """Return the tenant's primitive of this type. Raises Http404 if there is none."""
    row = selectors.primitive(primitive_id)
    if row is None or row.tenant_id != tenant.pk or row.primitive_type is not primitive_type:
        raise Http404
    return row
