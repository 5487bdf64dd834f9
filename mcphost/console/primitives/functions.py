"""Pages for Python functions: those that a tenant may use, and all that the code offers."""

from django.contrib import messages
from django.db.models import Count
from django.http import HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_POST, require_safe

from mcphost.catalogue import kinds, selectors, services
from mcphost.catalogue.errors import Invalid
from mcphost.catalogue.models import Grant
from mcphost.console.base import SignedInRequest, actor, of_platform, of_tenant, query_text, show
from mcphost.console.words import WORDS
from mcphost.tenants.access import allowed
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

GRANT = "grant"


@of_tenant(Permission.VIEW_TOOLS)
@require_safe
def listing(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """List the functions granted to a tenant; for staff also those that could be."""
    may_grant = allowed(request.user, tenant, Permission.GRANT_FUNCTIONS)
    rows = [row for row in selectors.functions(tenant.pk) if row.granted or may_grant]
    return show(
        request,
        "primitives/functions.html",
        "Functions",
        functions=rows,
        words=WORDS,
        may_grant=may_grant,
    )


@of_tenant(Permission.GRANT_FUNCTIONS)
@require_POST
def change(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Grant a function to a tenant, or revoke the grant."""
    function = query_text(request.POST, "function")
    try:
        if request.POST.get("verb") == GRANT:
            services.grant_function(tenant.pk, function, actor(request))
            messages.success(request, f"{tenant.slug} may use {function}.")
        else:
            services.revoke_grant(tenant.pk, function, actor(request))
            messages.success(request, f"{tenant.slug} may no longer use {function}.")
    except Invalid as refusal:
        messages.error(request, str(refusal))
    return redirect("admin:functions", tenant.slug)


@of_platform(Permission.GRANT_FUNCTIONS)
@require_safe
def code(request: SignedInRequest) -> HttpResponseBase:
    """Show the tools folder: its functions, how many tenants use each, and what is broken."""
    counted = Grant.objects.order_by().values("function").annotate(tenants=Count("tenant"))
    uses = {row["function"]: row["tenants"] for row in counted}
    found = kinds.functions()
    return show(
        request,
        "primitives/code.html",
        "Code",
        functions=[
            (reference, label, WORDS[kinds.primitive_type_of(reference)], uses.get(reference, 0))
            for reference, label in found
        ],
        gone=sorted(uses.keys() - dict(found).keys()),
        broken=[(kind.label, problem) for kind in kinds.KINDS.values() for problem in kind.check()],
    )
