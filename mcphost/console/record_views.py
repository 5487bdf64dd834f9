"""Which records a person asks for, and how they are named for people."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode
from uuid import UUID

from django.http import QueryDict

from mcphost.audit.selectors import UNKNOWN, EntryView, Filter, RoundView
from mcphost.console.base import word
from mcphost.runtime.outcomes import FailureKind
from mcphost.serving import records
from mcphost.tenants.models import Tenant

PERIODS: Mapping[str, timedelta] = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
    "month": timedelta(days=30),
}
OUTCOMES = tuple(
    dict.fromkeys(
        (
            records.COMPLETE,
            *(kind.value for kind in FailureKind),
            records.INPUT_REQUIRED,
            records.YIELDED,
            records.CANCELLED,
            UNKNOWN,
        )
    )
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the filter above a list says. Everything that is not understood is left out."""

    tenant: str = ""
    tool: str = ""
    outcome: str = ""
    principal: str = ""
    call: str = ""
    period: str = ""
    after: UUID | None = None

    @classmethod
    def of(cls, query: QueryDict) -> "Asked":
        """The filter in a page's address."""
        outcome, period = query.get("outcome", ""), query.get("period", "")
        return cls(
            tenant=word(query, "tenant"),
            tool=word(query, "tool"),
            outcome=outcome if outcome in OUTCOMES else "",
            principal=word(query, "principal"),
            call=word(query, "call"),
            period=period if period in PERIODS else "",
            after=_id(query.get("after", "")),
        )

    @property
    def is_narrow(self) -> bool:
        """Whether anything is filtered at all."""
        return any((self.tenant, self.tool, self.outcome, self.principal, self.call, self.period))

    def within(self, tenants: frozenset[UUID] | None, now: datetime) -> Filter:
        """The filter for the selector, inside `tenants`."""
        return Filter(
            tenants=tenants,
            target=self.tool,
            outcome=self.outcome,
            principal=self.principal,
            call=self.call,
            since=now - PERIODS[self.period] if self.period else None,
        )

    def older(self, after: UUID | None) -> str:
        """The query of the next page; empty on the last one."""
        if after is None:
            return ""
        names = ("tenant", "tool", "outcome", "principal", "call", "period")
        kept = {name: value for name in names if (value := getattr(self, name))}
        return urlencode({**kept, "after": str(after)})


def named_rounds(rounds: Iterable[RoundView]) -> list[tuple[RoundView, str]]:
    """Each round with the slug of its tenant as it is now; empty for the platform's."""
    found = tuple(rounds)
    slugs = _slugs(each.entry for each in found)
    return [(each, slugs.get(each.entry.tenant, "")) for each in found]


def named_entries(entries: Iterable[EntryView]) -> list[tuple[EntryView, str]]:
    """The same for entries."""
    found = tuple(entries)
    slugs = _slugs(found)
    return [(each, slugs.get(each.tenant, "")) for each in found]


def _slugs(entries: Iterable[EntryView]) -> Mapping[UUID | None, str]:
    ids = {each.tenant for each in entries if each.tenant is not None}
    return dict(Tenant.objects.filter(pk__in=ids).values_list("id", "slug"))


def _id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
