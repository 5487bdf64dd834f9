"""The first page: a person's tenants, what is wrong, and what happened lately."""

from dataclasses import dataclass
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from mcphost.audit import selectors as audit
from mcphost.catalogue import kinds
from mcphost.catalogue import selectors as catalogue
from mcphost.console.base import Visit, mcp_url, show
from mcphost.console.counting import Count, count
from mcphost.console.record_views import named_rounds
from mcphost.observability import health
from mcphost.tenants.access import allowed, tenants_where, visible_tenants
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

MOST_TENANTS = 12
RECENT = 8


@dataclass(frozen=True, slots=True)
class Card:
    """One tenant on the dashboard."""

    tenant: Tenant
    url: str
    counts: tuple[Count, ...]
    problems: tuple[catalogue.PrimitiveProblem, ...]


@require_safe
def index(request: Visit) -> HttpResponseBase:
    """The dashboard. Staff see the state of this process, too."""
    mine = list(visible_tenants(request.user).filter(closed_at=None)[: MOST_TENANTS + 1])
    staff = allowed(request.user, None, Permission.MANAGE_TENANT)
    return show(
        request,
        "dashboard.html",
        "Dashboard",
        cards=_cards(request, mine[:MOST_TENANTS]),
        more=len(mine) > MOST_TENANTS,
        rounds=named_rounds(audit.rounds(_chosen(request), limit=RECENT).rounds),
        staff=staff,
        unhealthy=health.problems() if staff else {},
        broken=[str(each) for kind in kinds.KINDS.values() for each in kind.check()]
        if staff
        else [],
    )


def home(request: HttpRequest) -> HttpResponseBase:
    """The site's root leads to the console."""
    return redirect("admin:index")


def _chosen(request: Visit) -> audit.Filter:
    if allowed(request.user, None, Permission.VIEW_RECORDS):
        return audit.Filter(tenants=None)
    mine = tenants_where(request.user, Permission.VIEW_RECORDS)
    return audit.Filter(tenants=frozenset(mine.values_list("id", flat=True)))


def _cards(request: Visit, tenants: list[Tenant]) -> list[Card]:
    rows: dict[UUID, list[catalogue.PrimitiveRow]] = {tenant.pk: [] for tenant in tenants}
    for row in catalogue.primitives(Tenant.objects.filter(pk__in=rows)):
        rows[row.tenant_id].append(row)
    return [
        Card(
            tenant,
            mcp_url(request, tenant.slug),
            count(rows[tenant.pk]),
            catalogue.problems(tenant.pk),
        )
        for tenant in tenants
    ]
