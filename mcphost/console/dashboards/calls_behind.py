"""Addresses of what a figure counts: the lists of calls and of questions, with the rule of the figure as their filter."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final, NamedTuple, Self
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.urls import reverse

from mcphost.audit.selectors import MADE_BY_CLIENTS
from mcphost.audit.summaries.figures import AnyPeriod, OwnPeriod
from mcphost.console.periods import COUNTED_DATES
from mcphost.tenants.access import allowed
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission


class RecordLists(NamedTuple):
    """The addresses of the lists of calls and of questions; empty where no page lists those of just these tenants."""

    calls: str = ""
    questions: str = ""


NO_LISTS: Final = RecordLists()


@dataclass(frozen=True, slots=True)
class CallsBehind:
    """Figures count calls of clients, and their questions, from `since` until before `until`."""

    lists: RecordLists
    since: datetime
    until: datetime | None = None

    @classmethod
    def of(cls, lists: RecordLists, period: AnyPeriod, now: datetime) -> Self:
        """Return the links of a period; one of the usual ones goes on until the list is read."""
        return cls(lists, period.start(now), period.ends if isinstance(period, OwnPeriod) else None)

    def url(self, **filters: str) -> str:
        """Return the address of the calls that also match these filters of the list."""
        return self._address(self.lists.calls, {"made_by": MADE_BY_CLIENTS, **filters})

    def questions_url(self, **filters: str) -> str:
        """Return the address of the questions of such calls, which are counted with their calls."""
        return self._address(self.lists.questions, {"counted": COUNTED_DATES, **filters})

    def _address(self, path: str, filters: dict[str, str]) -> str:
        if not path:
            return ""
        ends = {"since": self.since, "until": self.until}
        times = {name: _text(at) for name, at in ends.items() if at is not None}
        return f"{path}?{urlencode({**filters, **times, 'zone': 'UTC'})}"

    def within(self, since: datetime, until: datetime) -> "CallsBehind":
        """Return the links of a part of the time."""
        return replace(self, since=since, until=until)

    def of_tenant(self, slug: str) -> "CallsBehind":
        """Return the links of one tenant; none if it is unknown."""
        return replace(self, lists=tenant_lists(slug))


def tenant_lists(slug: str) -> RecordLists:
    """Return the lists of one tenant; none without a slug."""
    if not slug:
        return NO_LISTS
    return RecordLists(
        reverse("admin:calls", args=[slug]), reverse("admin:input_requests", args=[slug])
    )


def lists_of(user: User, readable: list[Tenant]) -> RecordLists:
    """Return the lists of all that a user may read: none if several tenants, but not all."""
    if allowed(user, None, Permission.VIEW_RECORDS):
        return RecordLists(reverse("admin:all_calls"), reverse("admin:all_input_requests"))
    return tenant_lists(readable[0].slug) if len(readable) == 1 else NO_LISTS


def whole(name: str) -> str:
    """Return a name as a filter that finds only it, and not what contains it."""
    return f'"{name}"'


def _text(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M" if not at.second else "%Y-%m-%dT%H:%M:%S")
