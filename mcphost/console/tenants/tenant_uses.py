"""The numbers of tenants in their list."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User

from mcphost.audit.summaries import selectors as summaries
from mcphost.audit.summaries.figures import Period
from mcphost.console.dashboards.panels import HIGH, percent
from mcphost.tenants.access import allowed, tenants_where
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission


@dataclass(frozen=True, slots=True)
class TenantUse:
    """The calls of one tenant in the last day; `is_high` says that many of them failed."""

    calls: int
    errors: int
    last_at: datetime | None

    @property
    def is_high(self) -> bool:
        return self.errors > HIGH * self.calls

    @property
    def error_rate(self) -> str:
        return percent(self.errors, self.calls)


def tenant_uses(
    user: User, tenants: Collection[Tenant], now: datetime
) -> Mapping[str, TenantUse | None]:
    """Return the numbers of the last day by slug, of tenants whose records the user may read.

    None is the value of a tenant without a call.
    """
    readable = {tenant.pk: tenant.slug for tenant in tenants}
    if readable and not allowed(user, None, Permission.VIEW_RECORDS):
        rows = tenants_where(user, Permission.VIEW_RECORDS).filter(pk__in=readable)
        readable = dict(rows.values_list("pk", "slug"))
    if not readable:
        return {}
    numbers = summaries.by_tenant(frozenset(readable), Period.DAY, now)
    return {
        slug: TenantUse(*numbers[tenant]) if tenant in numbers else None
        for tenant, slug in readable.items()
    }
