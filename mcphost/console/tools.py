"""Tools of a tenant: the list, the form, one tool's page, and what is done to its state."""

from collections.abc import Callable
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from mcphost.audit.records import Actor
from mcphost.catalogue import selectors, services
from mcphost.catalogue.errors import Invalid, WrongStateError
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.selectors import PrimitiveRow
from mcphost.catalogue.states import State, Verb
from mcphost.console.base import Crumb, Visit, actor, mcp_url, of_tenant, page_of, sent, show
from mcphost.console.tool_forms import ToolForm, granted, said_by_authors
from mcphost.console.tool_views import view_of
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
def listing(request: Visit, tenant: Tenant) -> HttpResponseBase:
    """Every tool, with its state and what keeps it from being served."""
    wanted, state = request.GET.get("q", "").strip()[:64], request.GET.get("state", "")
    problems = {each.primitive_id: each.message for each in selectors.problems(tenant.pk)}
    rows = selectors.primitives(Tenant.objects.filter(pk=tenant.pk), Sort.TOOL)
    found = [
        (row, problems.get(row.id, ""))
        for row in rows
        if wanted.lower() in f"{row.name} {row.fields.title}".lower()
        and state in ("", row.state.value)
    ]
    return show(
        request,
        "tools.html",
        "Tools",
        tools=found,
        total=len(rows),
        wanted=wanted,
        state=state,
        states=[each.value for each in State],
        may_use=bool(granted(tenant.pk)),
    )


@of_tenant(Permission.EDIT_TOOLS)
def add(request: Visit, tenant: Tenant) -> HttpResponseBase:
    """A new tool."""
    form = ToolForm(tenant.pk, *sent(request))
    if request.method == "POST" and form.is_valid():
        wanted, publish, who = form.wanted(), PUBLISH in request.POST, actor(request)
        made = form.attempt(lambda: _create(tenant.pk, wanted, who, publish=publish))
        if made is not None:
            return _saved(request, tenant, made, publish=publish)
    return _form_page(request, tenant, form, "New tool")


@of_tenant(Permission.EDIT_TOOLS)
def edit(request: Visit, tenant: Tenant, tool_id: UUID) -> HttpResponseBase:
    """The working copy of a tool."""
    row = _tool(tenant, tool_id)
    form = ToolForm(tenant.pk, *sent(request), before=row.fields)
    if request.method == "POST" and form.is_valid():
        wanted, publish, who = form.wanted(), PUBLISH in request.POST, actor(request)
        saved = form.attempt(lambda: _update(row.id, wanted, who, publish=publish))
        if saved is not None:
            return _saved(request, tenant, saved, publish=publish)
    return _form_page(request, tenant, form, "Edit", row)


@of_tenant(Permission.VIEW_TOOLS)
@require_safe
def detail(request: Visit, tenant: Tenant, tool_id: UUID) -> HttpResponseBase:
    """One tool: what is served, what differs, how to call it, and every version."""
    row = _tool(tenant, tool_id)
    found = view_of(row)
    return show(
        request,
        "tool.html",
        row.name,
        page_of(tenant, "tools", "Tools"),
        tool=found,
        row=row,
        curl=found.curl(mcp_url(request, tenant.slug)),
    )


@of_tenant(Permission.EDIT_TOOLS)
@require_POST
def move(request: Visit, tenant: Tenant, tool_id: UUID, verb: str) -> HttpResponseBase:
    """Publish, disable or enable a tool."""
    row = _tool(tenant, tool_id)
    service, sentence = _VERBS[Verb(verb)]
    try:
        service(row.id, actor(request))
    except (Invalid, WrongStateError) as refusal:
        messages.error(request, f"Nothing was changed. {refusal}")
    else:
        messages.success(request, sentence.format(row.name))
    return redirect("admin:tool", tenant.slug, row.id)


@transaction.atomic
def _create(tenant_id: UUID, wanted: PrimitiveFields, who: Actor, *, publish: bool) -> PrimitiveRow:
    made = services.create(tenant_id, wanted, who)
    return services.publish(made.id, who) if publish else made


@transaction.atomic
def _update(tool_id: UUID, wanted: PrimitiveFields, who: Actor, *, publish: bool) -> PrimitiveRow:
    saved = services.update(tool_id, wanted, who)
    return services.publish(saved.id, who) if publish else saved


def _saved(request: Visit, tenant: Tenant, row: PrimitiveRow, *, publish: bool) -> HttpResponseBase:
    if publish:
        messages.success(request, _VERBS[Verb.PUBLISH][1].format(row.name))
    else:
        messages.success(request, f"{row.name} is saved. What is served stays until you publish.")
    return redirect("admin:tool", tenant.slug, row.id)


def _form_page(
    request: Visit, tenant: Tenant, form: ToolForm, title: str, row: PrimitiveRow | None = None
) -> HttpResponseBase:
    crumbs = [page_of(tenant, "tools", "Tools")]
    back = reverse("admin:tools", args=[tenant.slug])
    if row is not None:
        back = reverse("admin:tool", args=[tenant.slug, row.id])
        crumbs.append(Crumb(row.name, back))
    return show(
        request,
        "tool_form.html",
        title,
        *crumbs,
        form=form,
        row=row,
        back=back,
        may_use=bool(granted(tenant.pk)),
        authors=said_by_authors(tenant.pk),
    )


def _tool(tenant: Tenant, tool_id: UUID) -> PrimitiveRow:
    """The tool, if it is this tenant's; another's is an unknown one."""
    row = selectors.primitive(tool_id)
    if row is None or row.tenant_id != tenant.pk:
        raise Http404
    return row
