"""Which records a person asks for, and how they are named for people."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from urllib.parse import urlencode
from uuid import UUID

from django.http import QueryDict

from mcphost.audit.calls import ASKED, REFUSED, CallRow, Waiting
from mcphost.audit.selectors import Filter
from mcphost.audit.timelines import EXPIRED, INVALID, OPEN, UNASKED
from mcphost.audit.views import UNKNOWN, EntryView
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
STATES = tuple(
    dict.fromkeys(
        (
            OPEN,
            EXPIRED,
            records.COMPLETE,
            *(kind.value for kind in FailureKind),
            records.YIELDED,
            records.CANCELLED,
            UNKNOWN,
        )
    )
)
"""How a call can stand."""
QUESTIONS: Mapping[str, str] = {
    ASKED: "any were asked",
    "accept": "accepted",
    "decline": "declined",
    "cancel": "cancelled",
    "received": "answered otherwise",
    "failed": "failed",
    INVALID: "did not fit",
    UNASKED: "answered unasked",
    REFUSED: "something refused",
}
"""What calls are chosen by that has to do with what they asked."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the filter above a list says. Everything that is not understood is left out."""

    tenant: str = ""
    tool: str = ""
    outcome: str = ""
    questions: str = ""
    principal: str = ""
    client: str = ""
    call: str = ""
    period: str = ""
    after: UUID | None = None

    @classmethod
    def of(cls, query: QueryDict) -> "Asked":
        """The filter in a page's address."""
        return cls(
            tenant=word(query, "tenant"),
            tool=word(query, "tool"),
            outcome=_one_of(STATES, query, "outcome"),
            questions=_one_of(QUESTIONS, query, "questions"),
            principal=word(query, "principal"),
            client=word(query, "client"),
            call=word(query, "call"),
            period=_one_of(PERIODS, query, "period"),
            after=_id(query.get("after", "")),
        )

    @property
    def _chosen(self) -> Mapping[str, str]:
        names = (field.name for field in fields(self) if field.name != "after")
        return {name: value for name in names if (value := getattr(self, name))}

    @property
    def is_narrow(self) -> bool:
        """Whether anything is filtered at all."""
        return bool(self._chosen)

    def within(self, tenants: frozenset[UUID] | None, now: datetime) -> Filter:
        """The filter for the selector, inside `tenants`."""
        return Filter(
            tenants=tenants,
            target=self.tool,
            outcome=self.outcome,
            questions=self.questions,
            principal=self.principal,
            client=self.client,
            call=self.call,
            since=now - PERIODS[self.period] if self.period else None,
        )

    def older(self, after: UUID | None) -> str:
        """The query of the next page; empty on the last one."""
        return "" if after is None else urlencode({**self._chosen, "after": str(after)})


def tenants_of(asked: Asked) -> frozenset[UUID] | None:
    """The tenant that the filter of the platform's people names; None for all of them."""
    if not asked.tenant:
        return None
    return frozenset(Tenant.objects.filter(slug=asked.tenant).values_list("id", flat=True))


def named_calls(calls: Iterable[CallRow]) -> list[tuple[CallRow, str]]:
    """Each call with the slug of its tenant as it is now."""
    found = tuple(calls)
    slugs = _slugs(each.entry for each in found)
    return [(each, slugs.get(each.entry.tenant, "")) for each in found]


def named_waiting(questions: Iterable[Waiting]) -> list[tuple[Waiting, str]]:
    """The same for questions that wait."""
    found = tuple(questions)
    slugs = _slugs(each.entry for each in found)
    return [(each, slugs.get(each.entry.tenant, "")) for each in found]


def named_entries(entries: Iterable[EntryView]) -> list[tuple[EntryView, str]]:
    """The same for entries; empty for the platform's."""
    found = tuple(entries)
    slugs = _slugs(found)
    return [(each, slugs.get(each.tenant, "")) for each in found]


def _slugs(entries: Iterable[EntryView]) -> Mapping[UUID | None, str]:
    ids = {each.tenant for each in entries if each.tenant is not None}
    return dict(Tenant.objects.filter(pk__in=ids).values_list("id", "slug"))


def _one_of(known: Iterable[str], query: QueryDict, name: str) -> str:
    said = query.get(name, "")
    return said if said in known else ""


def _id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
