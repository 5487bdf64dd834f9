"""The range of dates of a list, as a user writes it: two texts and a time zone."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

YEARS = range(2000, 2100)
"""The years that a range may name. Others would overflow what databases and browsers can show."""


@dataclass(frozen=True, slots=True)
class DateRange:
    """`since` is inclusive, `until` exclusive; `problems` are sentences about what is wrong."""

    since: datetime | None = None
    until: datetime | None = None
    problems: tuple[str, ...] = ()


ANY_TIME = DateRange()


def range_of(since: str, until: str, zone: str) -> DateRange:
    """Return the range that two dates or times of `zone` (empty: UTC) name.

    A date without a time is the whole day: as `until` it includes it.
    """
    time_zone = _zone(zone)
    if time_zone is None:
        return DateRange(problems=(f"There is no time zone “{zone}”.",))
    problems = [
        f"“{text}” is no date from {YEARS[0]} to {YEARS[-1]}, such as 2026-07-28 or 2026-07-28T14:30."
        for text in (since, until)
        if text and _moment(text, time_zone) is None
    ]
    if problems:
        return DateRange(problems=tuple(problems))
    first = _moment(since, time_zone) if since else None
    last = _moment(until, time_zone, end=True) if until else None
    if first is not None and last is not None and first >= last:
        return DateRange(problems=(f"The range ends ({until}) before it begins ({since}).",))
    return DateRange(first, last)


def local_text(at: datetime, zone: str) -> str:
    """Return a time as a form has it, to the minute, in a zone that `range_of` knows."""
    return at.astimezone(_zone(zone) or UTC).strftime("%Y-%m-%dT%H:%M")


def _moment(text: str, zone: tzinfo, *, end: bool = False) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    if at.year not in YEARS:
        return None
    if end and len(text) <= len("2026-07-28"):
        at += timedelta(days=1)
    return (at if at.tzinfo else at.replace(tzinfo=zone)).astimezone(UTC)


def _zone(name: str) -> tzinfo | None:
    if not name or name == "UTC":
        return UTC
    return ZoneInfo(name) if name in _names() else None


@cache
def _names() -> frozenset[str]:
    return frozenset(available_timezones())
