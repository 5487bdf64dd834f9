"""The dashboard: the user's tenants, problems, and recent calls."""

from dataclasses import dataclass
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_safe

from mcphost.audit import call_list
from mcphost.audit.selectors import EntryFilter
from mcphost.catalogue import kinds
from mcphost.catalogue import selectors as catalogue
from mcphost.console.base import SignedInRequest, mcp_url, show
from mcphost.console.records import tasks
from mcphost.console.records.filters import named_calls, named_waiting, still_open
from mcphost.console.tenants.counts import Count, count
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
def index(request: SignedInRequest) -> HttpResponseBase:
    """Show the dashboard; to staff also the state of this process."""
    mine = list(visible_tenants(request.user).filter(closed_at=None)[: MOST_TENANTS + 1])
    staff = allowed(request.user, None, Permission.MANAGE_TENANT)
    # Whose records the user may read; None means all tenants.
    readable: frozenset[UUID] | None = None
    if not allowed(request.user, None, Permission.VIEW_RECORDS):
        audited = tenants_where(request.user, Permission.VIEW_RECORDS)
        readable = frozenset(audited.values_list("id", flat=True))
    now = timezone.now()
    waiting = still_open(call_list.waiting(readable, now))
    rows: dict[UUID, list[catalogue.PrimitiveRow]] = {each.pk: [] for each in mine[:MOST_TENANTS]}
    for row in catalogue.primitives(Tenant.objects.filter(pk__in=rows)):
        rows[row.tenant_id].append(row)
    cards = [
        Card(
            tenant,
            mcp_url(request, tenant.slug),
            count(rows[tenant.pk]),
            catalogue.problems(tenant.pk),
        )
        for tenant in mine[:MOST_TENANTS]
    ]
    return show(
        request,
        "dashboard.html",
        "Dashboard",
        cards=cards,
        more=len(mine) > MOST_TENANTS,
        calls=named_calls(call_list.calls(EntryFilter(readable), now, limit=RECENT).calls),
        waiting=named_waiting(waiting[:RECENT]),
        waiting_count=len(waiting),
        tasks=tasks.summary(readable),
        staff=staff,
        unhealthy=health.problems() if staff else {},
        broken=[str(each) for kind in kinds.KINDS.values() for each in kind.check()]
        if staff
        else [],
    )


def home(request: HttpRequest) -> HttpResponseBase:
    """Redirect the site's root to the console."""
    return redirect("admin:index")
