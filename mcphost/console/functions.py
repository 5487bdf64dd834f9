"""Python functions: which a tenant may use, and what the code as a whole offers."""

from django.contrib import messages
from django.db.models import Count
from django.http import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from mcphost.catalogue import kinds, selectors, services
from mcphost.catalogue.errors import Invalid
from mcphost.catalogue.models import Grant
from mcphost.console.base import Visit, actor, of_platform, of_tenant, show, word
from mcphost.console.words import WORDS
from mcphost.tenants.access import allowed
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

GRANT = "grant"


@of_tenant(Permission.VIEW_TOOLS)
@require_safe
def listing(request: Visit, tenant: Tenant) -> HttpResponseBase:
    """What is granted to a tenant; staff also see what could be."""
    may_grant = allowed(request.user, tenant, Permission.GRANT_FUNCTIONS)
    rows = [row for row in selectors.functions(tenant.pk) if row.granted or may_grant]
    return show(
        request, "functions.html", "Functions", functions=rows, words=WORDS, may_grant=may_grant
    )


@of_tenant(Permission.GRANT_FUNCTIONS)
@require_POST
def change(request: Visit, tenant: Tenant) -> HttpResponseBase:
    """Grant a function to a tenant, or take it away."""
    function = word(request.POST, "function")
    try:
        if request.POST.get("verb") == GRANT:
            services.grant_function(tenant.pk, function, actor(request))
            messages.success(request, f"{tenant.slug} may use {function}.")
        else:
            services.revoke_grant(tenant.pk, function, actor(request))
            messages.success(request, f"{tenant.slug} may not use {function} any more.")
    except Invalid as refusal:
        messages.error(request, str(refusal))
    return redirect("admin:functions", tenant.slug)


@of_platform(Permission.GRANT_FUNCTIONS)
@require_safe
def code(request: Visit) -> HttpResponseBase:
    """What the folder with tools holds: functions, who uses them, and what is broken."""
    counted = Grant.objects.order_by().values("function").annotate(tenants=Count("tenant"))
    uses = {row["function"]: row["tenants"] for row in counted}
    found = kinds.functions()
    return show(
        request,
        "code.html",
        "Code",
        functions=[
            (reference, label, WORDS[kinds.sort_of(reference)], uses.get(reference, 0))
            for reference, label in found
        ],
        gone=sorted(uses.keys() - dict(found).keys()),
        broken=[(kind.label, problem) for kind in kinds.KINDS.values() for problem in kind.check()],
    )
