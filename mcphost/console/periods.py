"""The period that a page of numbers shows: one of the usual ones, or from one time to another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.http import QueryDict
from django.utils import timezone

from mcphost.audit.summaries.figures import AnyPeriod, OwnPeriod, Period
from mcphost.audit.summaries.rollups import kept_span
from mcphost.console.base import query_text
from mcphost.console.ranges import local_text, range_of

WORDS: Final[Mapping[Period, str]] = {
    Period.HOUR: "hour",
    Period.DAY: "24 hours",
    Period.WEEK: "7 days",
    Period.MONTH: "30 days",
}
COUNTED_DATES: Final = "dates"
"""The value of the filter *Counted in* for what figures count between the dates of the filter."""
RANGE: Final = ("since", "until", "zone")
"""The fields of a period from one time to another, as lists have them."""

_NO_SINCE: Final = "Say from when. Without an end, the period ends now."
_FUTURE: Final = "A period begins in the past."
_ROUNDED: Final = (
    "Minutes are kept for a day, hours for a month, and days for 400 days, in UTC. So these figures are of the "
    "nearest longer time."
)


@dataclass(frozen=True, slots=True)
class PeriodLink:
    """A link of the switch of periods."""

    label: str
    url: str
    current: bool


@dataclass(frozen=True, slots=True)
class AskedPeriod:
    """The period that a page shows. `problems` are sentences about what its URL asked for and is not shown, `note`
    says that another time is shown.

    `since`, `until` and `zone` are what the form has. `fields` are the other ones of the page's URL.
    """

    period: AnyPeriod
    links: Sequence[PeriodLink]
    as_of: datetime
    problems: Sequence[str] = ()
    note: str = ""
    since: str = ""
    until: str = ""
    zone: str = ""
    fields: Sequence[tuple[str, str]] = ()

    @property
    def is_own(self) -> bool:
        return isinstance(self.period, OwnPeriod)

    @property
    def includes_now(self) -> bool:
        """Whether its figures still change."""
        return self.period.end(self.as_of) > self.as_of

    @property
    def words(self) -> str:
        """The period in words, as they follow `in`."""
        if isinstance(self.period, OwnPeriod):
            first, last = (
                local_text(at, self.zone).replace("T", " ")
                for at in (self.period.begins, self.period.ends)
            )
            return f"{first} to {last} {self.zone or 'UTC'}"
        return f"the last {WORDS[self.period]}"


def asked_period(query: QueryDict, default: Period = Period.DAY) -> AskedPeriod:
    """Return the period that a URL asks for, with the links to the others."""
    now = timezone.now()
    name, since, until, zone = (query_text(query, field, 40) for field in ("period", *RANGE))
    is_period = name in tuple(Period)
    usual = Period(name) if is_period else default
    problems = [f"There is no period “{name}”."] if name and not is_period else []
    own, note = None, ""
    if since or until:
        own, note, wrong = _own_period(since, until, zone, now)
        problems = [*problems, *wrong]
    elif not name:
        zone = ""
    links = [
        PeriodLink(option.value, _with(query, option), own is None and option is usual)
        for option in Period
    ]
    fields = [
        (field, value) for field, value in query.items() if field not in ("period", "after", *RANGE)
    ]
    return AskedPeriod(
        own or usual,
        links,
        now,
        problems,
        note,
        since,
        until,
        zone,
        [(name, str(value)) for name, value in fields],
    )


def counted_in(period: AnyPeriod) -> dict[str, str]:
    """Return the filter of the list of questions that finds what the figures of a period count."""
    if not isinstance(period, OwnPeriod):
        return {"counted": period.value}
    since, until = (local_text(at, "") for at in (period.begins, period.ends))
    return {"counted": COUNTED_DATES, "since": since, "until": until, "zone": "UTC"}


def _own_period(
    since: str, until: str, zone: str, now: datetime
) -> tuple[OwnPeriod | None, str, Sequence[str]]:
    """Return the period between two times, a note if it is another one than was asked for, and problems."""
    dates = range_of(since, until, zone)
    if dates.problems:
        return None, "", dates.problems
    if dates.since is None:
        return None, "", [_NO_SINCE]
    if dates.since >= now:
        return None, "", [_FUTURE]
    asked_end = now if dates.until is None else min(dates.until, now)
    begins, ends = kept_span(dates.since, asked_end, now)
    minute = timedelta(minutes=1)
    is_other = dates.since - begins >= minute or begins > dates.since or ends - asked_end > minute
    return OwnPeriod(begins, ends), _ROUNDED if is_other else "", []


def _with(query: QueryDict, period: Period) -> str:
    """Return the URL of the same page for a period; a cursor belongs to the period before."""
    changed = query.copy()
    for field in RANGE:
        changed.pop(field, None)
    changed["period"] = period.value
    return f"?{changed.urlencode()}"
