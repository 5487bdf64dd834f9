"""What a tenant offers: tools, prompts, resources and templates, by the same pages.

Each sort has its list, its form, a page for each, and what is done to their state. The addresses
say which sort is meant (see `urls`), and a thing of another sort is an unknown one there.
"""

from collections.abc import Callable
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from mcphost.audit.records import Actor
from mcphost.catalogue import kinds, selectors, services
from mcphost.catalogue.errors import Invalid, WrongStateError
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.selectors import PrimitiveRow
from mcphost.catalogue.states import State, Verb
from mcphost.console.base import Crumb, Visit, actor, mcp_url, of_tenant, page_of, sent, show
from mcphost.console.primitive_forms import (
    PYTHON,
    PrimitiveForm,
    can_be_written,
    granted,
    kind_for,
    said_by_authors,
    ways,
)
from mcphost.console.primitive_views import view_of
from mcphost.console.words import WORDS, Words
from mcphost.kinds.sorts import Sort
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

PUBLISH = "_publish"
"""The name of the button that saves and publishes."""

_VERBS: dict[Verb, tuple[Callable[[UUID, Actor], PrimitiveRow], str]] = {
    Verb.PUBLISH: (services.publish, "{} is published. The next request sees it."),
    Verb.DISABLE: (services.disable, "{} is disabled. The next request does not see it."),
    Verb.ENABLE: (services.enable, "{} is served again, as it was published."),
}


@of_tenant(Permission.VIEW_TOOLS)
@require_safe
def listing(request: Visit, tenant: Tenant, sort: Sort) -> HttpResponseBase:
    """Every one of a sort, with its state and what keeps it from being served."""
    words = WORDS[sort]
    wanted, state = request.GET.get("q", "").strip()[:64], request.GET.get("state", "")
    problems = {each.primitive_id: each.message for each in selectors.problems(tenant.pk)}
    rows = selectors.primitives(Tenant.objects.filter(pk=tenant.pk), sort)
    found = [
        (row, kinds.function_of(row.fields.kind, row.fields.config), problems.get(row.id, ""))
        for row in rows
        if wanted.lower() in f"{row.name} {row.fields.title} {row.uri}".lower()
        and state in ("", row.state.value)
    ]
    return show(
        request,
        "primitives.html",
        words.title,
        words=words,
        rows=found,
        total=len(rows),
        wanted=wanted,
        state=state,
        states=[each.value for each in State],
        may_make=can_be_written(sort) or bool(granted(tenant.pk, sort)),
    )


@of_tenant(Permission.EDIT_TOOLS)
def add(request: Visit, tenant: Tenant, sort: Sort) -> HttpResponseBase:
    """A new one."""
    asked = request.POST if request.method == "POST" else request.GET
    kind = kind_for(sort, asked.get("kind", ""))
    form = PrimitiveForm(WORDS[sort], tenant.pk, kind, sent(request), None)
    if request.method == "POST" and form.is_valid():
        wanted, publish, who = form.wanted(), PUBLISH in request.POST, actor(request)
        made = form.attempt(lambda: _create(tenant.pk, wanted, who, publish=publish))
        if made is not None:
            return _saved(request, tenant, made, publish=publish)
    return _form_page(request, tenant, WORDS[sort], form)


@of_tenant(Permission.EDIT_TOOLS)
def edit(request: Visit, tenant: Tenant, sort: Sort, primitive_id: UUID) -> HttpResponseBase:
    """The working copy of one."""
    row = row_of(tenant, sort, primitive_id)
    form = PrimitiveForm(WORDS[sort], tenant.pk, row.fields.kind, sent(request), row.fields)
    if request.method == "POST" and form.is_valid():
        wanted, publish, who = form.wanted(), PUBLISH in request.POST, actor(request)
        saved = form.attempt(lambda: _update(row.id, wanted, who, publish=publish))
        if saved is not None:
            return _saved(request, tenant, saved, publish=publish)
    return _form_page(request, tenant, WORDS[sort], form, row)


@of_tenant(Permission.VIEW_TOOLS)
@require_safe
def detail(request: Visit, tenant: Tenant, sort: Sort, primitive_id: UUID) -> HttpResponseBase:
    """One: what is served, what differs, how to ask for it, and every version."""
    row = row_of(tenant, sort, primitive_id)
    return show(
        request,
        "primitive.html",
        row.name,
        _list_of(tenant, WORDS[sort]),
        words=WORDS[sort],
        offer=view_of(row, mcp_url(request, tenant.slug)),
        row=row,
    )


@of_tenant(Permission.EDIT_TOOLS)
@require_POST
def move(
    request: Visit, tenant: Tenant, sort: Sort, primitive_id: UUID, verb: str
) -> HttpResponseBase:
    """Publish, disable or enable one."""
    row = row_of(tenant, sort, primitive_id)
    service, sentence = _VERBS[Verb(verb)]
    try:
        service(row.id, actor(request))
    except (Invalid, WrongStateError) as refusal:
        messages.error(request, f"Nothing was changed. {refusal}")
    else:
        messages.success(request, sentence.format(row.name))
    return redirect(WORDS[sort].detail, tenant.slug, row.id)


@transaction.atomic
def _create(tenant_id: UUID, wanted: PrimitiveFields, who: Actor, *, publish: bool) -> PrimitiveRow:
    made = services.create(tenant_id, wanted, who)
    return services.publish(made.id, who) if publish else made


@transaction.atomic
def _update(
    primitive_id: UUID, wanted: PrimitiveFields, who: Actor, *, publish: bool
) -> PrimitiveRow:
    saved = services.update(primitive_id, wanted, who)
    return services.publish(saved.id, who) if publish else saved


def _saved(request: Visit, tenant: Tenant, row: PrimitiveRow, *, publish: bool) -> HttpResponseBase:
    if publish:
        messages.success(request, _VERBS[Verb.PUBLISH][1].format(row.name))
    else:
        messages.success(request, f"{row.name} is saved. What is served stays until you publish.")
    return redirect(WORDS[row.sort].detail, tenant.slug, row.id)


def _form_page(
    request: Visit,
    tenant: Tenant,
    words: Words,
    form: PrimitiveForm,
    row: PrimitiveRow | None = None,
) -> HttpResponseBase:
    crumbs = [_list_of(tenant, words)]
    back = crumbs[0].url
    if row is not None:
        back = reverse(words.detail, args=[tenant.slug, row.id])
        crumbs.append(Crumb(row.name, back))
    return show(
        request,
        "primitive_form.html",
        "Edit" if row is not None else f"New {words.one}",
        *crumbs,
        words=words,
        form=form,
        row=row,
        back=back,
        ways=() if row is not None else ways(words, form.kind),
        needs_function=form.kind == PYTHON and not granted(tenant.pk, words.sort),
        authors=said_by_authors(tenant.pk, words.sort) if form.kind == PYTHON else {},
    )


def _list_of(tenant: Tenant, words: Words) -> Crumb:
    return page_of(tenant, words.listing.removeprefix("admin:"), words.title)


def row_of(tenant: Tenant, sort: Sort, primitive_id: UUID) -> PrimitiveRow:
    """The thing, if it is this tenant's and of this sort; another's is an unknown one."""
    row = selectors.primitive(primitive_id)
    if row is None or row.tenant_id != tenant.pk or row.sort is not sort:
        raise Http404
    return row
