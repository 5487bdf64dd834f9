"""The period that a page of numbers shows, and the links of its switch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.http import QueryDict

from mcphost.audit.summaries.figures import Period
from mcphost.console.base import query_text

WORDS: Final[Mapping[Period, str]] = {
    Period.HOUR: "hour",
    Period.DAY: "24 hours",
    Period.WEEK: "7 days",
    Period.MONTH: "30 days",
}


@dataclass(frozen=True, slots=True)
class PeriodLink:
    """A link of the switch of periods."""

    label: str
    url: str
    current: bool


@dataclass(frozen=True, slots=True)
class AskedPeriod:
    """The period that a page shows; `unknown` is what its URL said, if there is no such period."""

    period: Period
    links: Sequence[PeriodLink]
    unknown: str = ""

    @property
    def words(self) -> str:
        """The period in words, after "the last"."""
        return WORDS[self.period]


def _with(query: QueryDict, period: Period) -> str:
    """Return the URL of the same page for a period; a cursor belongs to the period before."""
    changed = query.copy()
    changed["period"] = period.value
    return f"?{changed.urlencode()}"


def asked_period(query: QueryDict, default: Period = Period.DAY) -> AskedPeriod:
    """Return the period that a URL asks for, with the links to the others."""
    text = query_text(query, "period", 40)
    is_period = text in tuple(Period)
    period = Period(text) if is_period else default
    links = [PeriodLink(option.value, _with(query, option), option is period) for option in Period]
    return AskedPeriod(period, links, "" if is_period else text)
