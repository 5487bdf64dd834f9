"""Addresses of the calls that a figure counts: the list of calls with the rule of the figure as its filter."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Self
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.urls import reverse

from mcphost.audit.selectors import MADE_BY_CLIENTS
from mcphost.audit.summaries.figures import AnyPeriod, OwnPeriod
from mcphost.tenants.access import allowed
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission


@dataclass(frozen=True, slots=True)
class CallsBehind:
    """`path` is the list; empty where no page lists the calls of just these tenants. Figures count calls of clients,
    from `since` until before `until`."""

    path: str
    since: datetime
    until: datetime | None = None

    @classmethod
    def of(cls, path: str, period: AnyPeriod, now: datetime) -> Self:
        """Return the links of a period; one of the usual ones goes on until the list is read."""
        return cls(path, period.start(now), period.ends if isinstance(period, OwnPeriod) else None)

    def url(self, **filters: str) -> str:
        """Return the address of the calls that also match these filters of the list."""
        if not self.path:
            return ""
        ends = {"since": self.since, "until": self.until}
        times = {name: _text(at) for name, at in ends.items() if at is not None}
        return f"{self.path}?{urlencode({'made_by': MADE_BY_CLIENTS, **filters, **times, 'zone': 'UTC'})}"

    def within(self, since: datetime, until: datetime) -> "CallsBehind":
        """Return the links of a part of the time."""
        return replace(self, since=since, until=until)

    def of_tenant(self, slug: str) -> "CallsBehind":
        """Return the links of one tenant; none if it is unknown."""
        return replace(self, path=tenant_list(slug))


def tenant_list(slug: str) -> str:
    """Return the address of the list of one tenant's calls; empty without a slug."""
    return reverse("admin:calls", args=[slug]) if slug else ""


def list_of(user: User, readable: list[Tenant]) -> str:
    """Return the address of the list of all calls that a user may read: empty if several tenants, but not all."""
    if allowed(user, None, Permission.VIEW_RECORDS):
        return reverse("admin:all_calls")
    return tenant_list(readable[0].slug) if len(readable) == 1 else ""


def whole(name: str) -> str:
    """Return a name as a filter that finds only it, and not what contains it."""
    return f'"{name}"'


def _text(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M" if not at.second else "%Y-%m-%dT%H:%M:%S")
