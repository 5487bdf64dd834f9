"""The dashboard: the numbers of the user's tenants, what needs attention, and recent calls."""

from dataclasses import dataclass
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_safe

from mcphost.audit import call_list
from mcphost.audit.selectors import EntryFilter
from mcphost.console.base import SignedInRequest, mcp_url, show
from mcphost.console.dashboards.attention import Viewer, hands
from mcphost.console.dashboards.calls_behind import lists_of
from mcphost.console.dashboards.panels import panel
from mcphost.console.periods import asked_period
from mcphost.console.records import tasks
from mcphost.console.records.filters import (
    named_waiting,
    of_clients,
    still_open,
)
from mcphost.console.tenants.counts import Count, counts
from mcphost.kinds.script.kind import script_kind
from mcphost.listings.calls import named_calls
from mcphost.listings.input_requests import count_open
from mcphost.tenants.access import allowed, tenants_where, visible_tenants
from mcphost.tenants.models import TENANTS_BY_TITLE, Tenant
from mcphost.tenants.roles import Permission

MAX_TENANTS = 12
RECENT = 8


@dataclass(frozen=True, slots=True)
class Card:
    """One tenant on the dashboard."""

    tenant: Tenant
    url: str
    counts: tuple[Count, ...]


@require_safe
def index(request: SignedInRequest) -> HttpResponseBase:
    """Show the dashboard; to staff also the state of this process."""
    visible = visible_tenants(request.user).filter(closed_at=None).order_by(*TENANTS_BY_TITLE)
    tenants = list(visible[: MAX_TENANTS + 1])
    shown = tenants[:MAX_TENANTS]
    staff = allowed(request.user, None, Permission.MANAGE_TENANT)
    # Whose records the user may read; None means all tenants.
    readable: frozenset[UUID] | None = None
    audited_tenants: list[Tenant] = []
    if not allowed(request.user, None, Permission.VIEW_RECORDS):
        audited_tenants = list(tenants_where(request.user, Permission.VIEW_RECORDS))
        readable = frozenset(tenant.pk for tenant in audited_tenants)
    now = timezone.now()
    waiting = of_clients(still_open(call_list.waiting(readable, now)))
    period_choice = asked_period(request.GET)
    return show(
        request,
        "dashboard.html",
        "Dashboard",
        cards=_cards(request, shown),
        more=len(tenants) > MAX_TENANTS,
        hands=hands(Viewer(request.user, readable), shown, waiting, now),
        panel=panel(readable, period_choice, now, lists_of(request.user, audited_tenants)),
        period_choice=period_choice,
        several=readable is None or len(readable) > 1,
        calls=named_calls(call_list.calls(EntryFilter(readable), now, limit=RECENT).calls),
        waiting=named_waiting(waiting[:RECENT]),
        waiting_count=count_open(readable, now),
        tasks=tasks.summary(readable),
        staff=staff,
        sandbox=script_kind.sandbox if staff else None,
    )


def _cards(request: SignedInRequest, shown: list[Tenant]) -> list[Card]:
    counts_by_tenant = counts([tenant.pk for tenant in shown])
    return [
        Card(tenant, mcp_url(request, tenant.slug), counts_by_tenant[tenant.pk]) for tenant in shown
    ]


def home(request: HttpRequest) -> HttpResponseBase:
    """Redirect the site's root to the console."""
    return redirect("admin:index")
