"""Filters for lists of records, and the tenant names shown beside the records."""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.http import QueryDict

from mcphost.audit import texts
from mcphost.audit.call_list import REFUSED, WITH_QUESTIONS, WaitingQuestion
from mcphost.audit.entries import UNKNOWN, EntryView
from mcphost.audit.selectors import MADE_BY_CLIENTS, MADE_BY_TRIALS, EntryFilter
from mcphost.audit.summaries.batches import ERROR
from mcphost.audit.summaries.search import NO_ERROR
from mcphost.audit.timeline import DECLINED, EXPIRED, INVALID, LOST, OPEN, UNASKED
from mcphost.console.base import query_text
from mcphost.console.periods import COUNTED_DATES
from mcphost.console.ranges import ANY_TIME, DateRange, range_of
from mcphost.console.records.stages import QUESTION_STATES
from mcphost.console.templatetags.questions import outcome
from mcphost.listings.input_requests import still_open_keys
from mcphost.runtime.call import Delivery
from mcphost.runtime.outcomes import FailureKind
from mcphost.serving.execution import audit_records
from mcphost.tenants.models import Tenant
from mcphost.tenants.selectors import slugs

PERIODS: Mapping[str, timedelta] = {
    "1h": timedelta(hours=1),
    "24h": timedelta(days=1),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
PERIOD_NAMES: Mapping[str, str] = {
    "1h": "last hour",
    "24h": "last 24 hours",
    "7d": "last 7 days",
    "30d": "last 30 days",
}
_OLD_PERIODS: Mapping[str, str] = {"hour": "1h", "day": "24h", "week": "7d", "month": "30d"}
"""Names of periods in links that were made by earlier releases."""
STATES = tuple(
    dict.fromkeys(
        (
            OPEN,
            EXPIRED,
            LOST,
            audit_records.COMPLETE,
            DECLINED,
            *(kind.value for kind in FailureKind),
            audit_records.YIELDED,
            audit_records.DEFERRED,
            audit_records.CANCELLED,
            UNKNOWN,
        )
    )
)
"""The statuses that a call can have."""
OUTCOMES: Mapping[str, str] = {
    **{state: outcome(state) for state in STATES},
    ERROR: "any error",
    NO_ERROR: "neither error nor turned down",
}
"""The values by which calls are filtered according to how they ended."""
MADE_BY: Mapping[str, str] = {
    MADE_BY_CLIENTS: "clients",
    MADE_BY_TRIALS: "trials",
}
QUESTIONS: Mapping[str, str] = {
    WITH_QUESTIONS: "with questions",
    "accept": "accepted",
    "decline": "declined",
    "cancel": "cancelled",
    "received": "answered otherwise",
    "failed": "failed",
    INVALID: "invalid",
    UNASKED: "answer not requested",
    REFUSED: "something rejected",
}
"""The values by which calls are filtered according to their questions."""


AREAS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "tool": ("tools", ("tool.", "saved_call.")),
    "prompt": ("prompts", ("prompt.",)),
    "resource": ("resources", ("resource.",)),
    "template": ("templates", ("template.",)),
    "function": ("Python functions", ("function.",)),
    "secret": ("secrets", ("secret.",)),
    "key": ("keys and salts", ("key.", "secrets.", "salt.")),
    "token": ("tokens and service accounts", ("token.", "staff_token.", "service_account.")),
    "connection": ("connected apps", ("connection.",)),
    "member": ("members and invitations", ("member.", "invitation.")),
    "user": ("users", ("user.",)),
    "signin": ("sign-ins", ("signin.",)),
    "tenant": ("tenants", ("tenant.",)),
    "call": ("calls and tasks", ("call.", "task.")),
    "payload": ("payloads and exports", ("payload.", "calls.", "questions.", "entries.")),
    "filter": ("saved filters", ("filter.",)),
}
"""What the actions of the audit log are about: a name in words, and how the actions begin."""
COUNTED: Mapping[str, str] = {**PERIOD_NAMES, COUNTED_DATES: "these dates"}
MAX_TEXT: Final = texts.MAX_TEXT + 2
"""Characters of a filter: the longest name that a record keeps, in double quotes."""
_FREE = ("tenant", "tool", "principal", "client", "call", "trace", "words")
_FIXED: Mapping[str, Collection[str]] = {
    "outcome": OUTCOMES,
    "questions": QUESTIONS,
    "state": QUESTION_STATES,
    "counted": COUNTED,
    "made_by": MADE_BY,
    "area": AREAS,
    "period": PERIODS,
}
"""The filters with a fixed list of values."""
_RANGE = ("since", "until", "zone")
LABELS: Mapping[str, str] = {
    "outcome": "Outcome",
    "questions": "Questions",
    "state": "State",
    "counted": "Counted in",
    "made_by": "Made by",
    "area": "Area",
    "period": "Period",
}


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """The filter above a list.

    `since` and `until` are texts in `zone`, and `dates` is the range that they name. `unknown` are
    sentences about values that do not exist: with any, the list is empty and shows them.
    """

    tenant: str = ""
    tool: str = ""
    outcome: str = ""
    questions: str = ""
    state: str = ""
    counted: str = ""
    made_by: str = ""
    principal: str = ""
    client: str = ""
    call: str = ""
    trace: str = ""
    words: str = ""
    area: str = ""
    period: str = ""
    since: str = ""
    until: str = ""
    zone: str = ""
    dates: DateRange = ANY_TIME
    after: UUID | None = None
    before: UUID | None = None
    unknown: tuple[str, ...] = ()

    @classmethod
    def of(cls, query: QueryDict) -> "RecordFilter":
        """Parse the filter in a page's query string."""
        words = {name: query_text(query, name, MAX_TEXT) for name in (*_FREE, *_FIXED, *_RANGE)}
        words["period"] = _OLD_PERIODS.get(words["period"], words["period"])
        if not (words["since"] or words["until"]):
            words["zone"] = ""
        dates = range_of(words["since"], words["until"], words["zone"])
        pages = {name: query_text(query, name) for name in ("after", "before")}
        cursors = {name: page_cursor(text) for name, text in pages.items()}
        unknown = [
            f"The filter “{LABELS[name]}” has no value “{words[name]}”."
            for name, choices in _FIXED.items()
            if words[name] and words[name] not in choices
        ]
        unknown += dates.problems
        unknown += [
            f"There is no page “{text}”."
            for name, text in pages.items()
            if text and cursors[name] is None
        ]
        return cls(
            **words,
            dates=dates,
            after=cursors["after"],
            before=cursors["before"],
            unknown=tuple(unknown),
        )

    @property
    def active_filters(self) -> Mapping[str, str]:
        """The filters that are set, by name."""
        names = (*_FREE, *_FIXED, *_RANGE)
        return {name: value for name in names if (value := getattr(self, name))}

    @property
    def is_narrow(self) -> bool:
        """Whether any filter is set."""
        return bool(self.active_filters)

    def begins(self, now: datetime) -> datetime | None:
        """Return since when: the later begin of the period and the dates."""
        since = now - PERIODS[self.period] if self.period in PERIODS else None
        if self.dates.since is not None:
            since = max(since or self.dates.since, self.dates.since)
        return since

    def within(self, tenants: frozenset[UUID] | None, now: datetime) -> EntryFilter:
        """Return the filter for the selector, limited to `tenants`."""
        return EntryFilter(
            tenants=frozenset() if self.unknown else tenants,
            target=self.tool,
            outcome=self.outcome,
            questions=self.questions,
            made_by=self.made_by,
            principal=self.principal,
            client=self.client,
            call=self.call,
            trace=self.trace,
            words=self.words,
            actions=AREAS[self.area][1] if self.area in AREAS else (),
            since=self.begins(now),
            until=self.dates.until,
        )

    @property
    def query(self) -> str:
        """Return the query string of this filter, from the first page on."""
        return urlencode(self.active_filters)

    def older(self, after: UUID | None) -> str:
        """Return the query string of the next page; empty on the last one."""
        return "" if after is None else urlencode({**self.active_filters, "after": str(after)})

    def newer(self, before: UUID | None) -> str:
        """Return the query string of the page before; empty on the first one."""
        return "" if before is None else urlencode({**self.active_filters, "before": str(before)})

    def only(self, *names: str) -> "RecordFilter":
        """Return the filter without what a list cannot be filtered by; `names` are what it can."""
        kept = {"tenant", *names, *(_RANGE if "period" in names else ())}
        excluded = [name for name in (*_FREE, *_FIXED, *_RANGE) if name not in kept]
        cleared: dict[str, Any] = dict.fromkeys(excluded, "")
        return replace(self, **cleared)

    def without(self, *names: str) -> "RecordFilter":
        """Return the filter with these removed, from the first page on."""
        if not {"since", "until"} & set(names):
            cleared: dict[str, Any] = dict.fromkeys(names, "")
        else:
            cleared = {**dict.fromkeys((*names, *_RANGE), ""), "dates": ANY_TIME}
        return replace(self, **cleared, after=None, before=None, unknown=())


def page_cursor(text: str) -> UUID | None:
    """Return the cursor of a page as its address names it; None for anything else."""
    with suppress(ValueError):
        return UUID(text)
    return None


def tenants_of(record_filter: RecordFilter) -> frozenset[UUID] | None:
    """Return the tenant that the filter names, as a set; None means all tenants."""
    if not record_filter.tenant:
        return None
    return frozenset(Tenant.objects.filter(slug=record_filter.tenant).values_list("id", flat=True))


def named_waiting(questions: Iterable[WaitingQuestion]) -> list[tuple[WaitingQuestion, str]]:
    """Pair each waiting question with the current slug of its tenant."""
    waiting = tuple(questions)
    slug_by_tenant = slugs(question.entry.tenant for question in waiting)
    return [(question, slug_by_tenant.get(question.entry.tenant, "")) for question in waiting]


def still_open(questions: Iterable[WaitingQuestion]) -> list[WaitingQuestion]:
    """Leave out questions of tasks that have an answer already.

    An answer to a task is recorded when its next round begins, which may be when the last one of
    several questions is answered.
    """
    waiting = tuple(questions)
    unanswered = still_open_keys(
        question.entry.call for question in waiting if question.entry.delivery == Delivery.TASK
    )
    return [
        question
        for question in waiting
        if question.entry.delivery != Delivery.TASK
        or (question.entry.call, question.key) in unanswered
    ]


def of_clients(questions: Iterable[WaitingQuestion]) -> list[WaitingQuestion]:
    """Leave out questions of trials: they are no traffic."""
    return [question for question in questions if question.entry.delivery != Delivery.PLAYGROUND]


def named_entries(entries: Iterable[EntryView]) -> list[tuple[EntryView, str]]:
    """Pair each entry with the current slug of its tenant; empty for the platform's entries."""
    listed_entries = tuple(entries)
    slug_by_tenant = slugs(entry.tenant for entry in listed_entries)
    return [(entry, slug_by_tenant.get(entry.tenant, "")) for entry in listed_entries]
