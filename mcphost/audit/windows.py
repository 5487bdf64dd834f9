"""Read along one index the rows that match, in windows of bounded size.

What the index does not choose is compared with the rows. So a page costs about the same however many rows
there are: after too many rows, or too long, it is short, and the next page goes on from there.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

WINDOW: Final = 500
"""How many rows the first window has; each has twice as many as the one before, up to LARGEST."""
LARGEST: Final = 2_000
MOST_WINDOWS: Final = 7
"""How many windows are compared for one page at most."""
COMPARING_SECONDS: Final = 0.1
"""After how long no further window is begun."""


@dataclass(frozen=True, slots=True)
class Walk:
    """Along which column, from where (None: from the newest) and how many rows are needed.

    `reverse`: from older to newer rows. `until` is a time of the monotonic clock.
    """

    column: str
    start: UUID | None
    reverse: bool
    need: int
    until: float

    @property
    def order(self) -> str:
        return self.column if self.reverse else f"-{self.column}"

    def beyond(self, at: UUID) -> dict[str, UUID]:
        """The lookup of rows after one."""
        return {f"{self.column}__{'gt' if self.reverse else 'lt'}": at}

    def up_to(self, end: UUID) -> dict[str, UUID]:
        """The lookup of rows up to one, which is included."""
        return {f"{self.column}__{'lte' if self.reverse else 'gte'}": end}


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
    found: list[Any] = []
    for number in range(MOST_WINDOWS):
        window = rows if at is None else rows.filter(**walk.beyond(at))
        last = min(WINDOW * 2**number, LARGEST) - 1
        end = window.values_list(walk.column, flat=True)[last : last + 1].first()
        if end is not None:
            window = window.filter(**walk.up_to(end))
        found += read(matching(window))[: walk.need - len(found)]
        if len(found) >= walk.need or end is None:
            return found, None
        at = end
        if time.monotonic() > walk.until:
            break
    return found, at
