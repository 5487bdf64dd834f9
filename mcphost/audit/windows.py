"""Read matching rows along one index, in windows of bounded size.

What the index does not choose is compared with the rows. So a page costs about the same however many rows
there are: after too many rows, or too long, it is short, and the next page goes on from there.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

WINDOW: Final = 500
"""How many rows the first window has; each has twice as many as the one before, up to MAX_WINDOW."""
MAX_WINDOW: Final = 2_000
MAX_WINDOWS: Final = 10
"""How many windows are compared for one page at most, not counting those that end with a span."""
COMPARING_SECONDS: Final = 0.1
"""After how long no further window is begun."""


class IdSpan(NamedTuple):
    """Ids from `first` to before `end`; None: without a bound."""

    first: UUID | None = None
    end: UUID | None = None

    def within(self, other: "IdSpan") -> "IdSpan | None":
        """Return the part of this span that is in the other one, None if there is none."""
        first = max((id for id in (self.first, other.first) if id is not None), default=None)
        end = min((id for id in (self.end, other.end) if id is not None), default=None)
        return (
            None if first is not None and end is not None and first >= end else IdSpan(first, end)
        )


ALL: Final = (IdSpan(),)


@dataclass(frozen=True, slots=True)
class Walk:
    """Along which column, from where (None: from the newest) and how many rows are needed.

    `reverse`: from older to newer rows. `until` is a time of the monotonic clock. Matching rows are within `spans`,
    which do not overlap, the oldest first.
    """

    column: str
    start: UUID | None
    reverse: bool
    need: int
    until: float
    spans: Sequence[IdSpan] = ALL

    @property
    def order(self) -> str:
        return self.column if self.reverse else f"-{self.column}"

    def pieces(self) -> Iterator[IdSpan]:
        """The spans that are still to be read, in their order."""
        for span in self.spans if self.reverse else reversed(self.spans):
            bound = span.end if self.reverse else span.first
            if (
                self.start is None
                or bound is None
                or (bound > self.start if self.reverse else bound < self.start)
            ):
                yield span

    def beyond(self, at: UUID) -> dict[str, UUID]:
        """The lookup of rows after one."""
        return {f"{self.column}__{'gt' if self.reverse else 'lt'}": at}

    def within(self, span: IdSpan, at: UUID | None, last: UUID | None = None) -> dict[str, UUID]:
        """The lookup of rows of a span, after `at`, up to `last`, which is included.

        It has one bound in each direction: of two, SQLite may take the wrong one to read an index.
        """
        bounds: dict[str, UUID | None]
        if self.reverse:
            if at is not None and (span.first is None or at >= span.first):
                bounds = {"gt": at}
            else:
                bounds = {"gte": span.first}
            bounds.update({"lt": span.end} if last is None else {"lte": last})
        else:
            ends = [bound for bound in (span.end, at) if bound is not None]
            bounds = {"lt": min(ends, default=None), "gte": span.first if last is None else last}
        return {f"{self.column}__{key}": id for key, id in bounds.items() if id is not None}

    def end(self, span: IdSpan) -> UUID | None:
        """The start of a walk that goes on where a span ends."""
        if not self.reverse:
            return span.first
        return None if span.end is None else including(span.end, reverse=False)


def including(at: UUID, reverse: bool) -> UUID:
    """Return the start of a walk in the other direction that begins with the row `at` itself."""
    return UUID(int=min(max(0, at.int + (1 if reverse else -1)), 2**128 - 1))


def deadline() -> float:
    """Return the time after which a page that begins now compares no further window."""
    return time.monotonic() + COMPARING_SECONDS


def take(
    rows: Any, walk: Walk, matching: Callable[[Any], Any] | None, read: Callable[[Any], Any]
) -> tuple[Sequence[Any], UUID | None]:
    """Return the first rows that match, at most as many as are needed, and how far was compared.

    `matching` narrows a window, None: all rows match; `read` evaluates what is left, a slice of it. All
    matches are known up to the second value; None: to the end, or as many as were needed.
    """
    rows, at = rows.order_by(walk.order), walk.start
    if matching is None:
        return list(read(rows if at is None else rows.filter(**walk.beyond(at)))[: walk.need]), None
    matches: list[Any] = []
    compared, begun = 0, False
    for span in walk.pieces():
        is_cut = True
        while is_cut:
            if begun and (compared >= MAX_WINDOWS or time.monotonic() > walk.until):
                return matches, at
            begun = True
            window = rows.filter(**walk.within(span, at))
            last = _last(window, walk.column, min(WINDOW * 2**compared, MAX_WINDOW))
            if last is not None:
                window = rows.filter(**walk.within(span, at, last))
                compared += 1
            matches += read(matching(window))[: walk.need - len(matches)]
            if len(matches) >= walk.need:
                return matches, None
            is_cut = last is not None
            at = last if is_cut else walk.end(span)
    return matches, None


def _last(window: Any, column: str, size: int) -> UUID | None:
    """The last row of a window of a size; None if there are fewer rows."""
    last: UUID | None = window.values_list(column, flat=True)[size - 1 : size].first()
    return last
