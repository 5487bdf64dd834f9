"""Exported rows: bounded reads of a list, and its rows as CSV or as JSON Lines.

The last line of a file says how many rows there are, and whether they are all: a file without it was interrupted.
"""

import csv
import io
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

Row = Mapping[str, Any]
Rows = tuple[list[Row], UUID | None]
"""Rows, and the cursor after them, None at the end."""


class RowCount(NamedTuple):
    """How many rows an export would have; `after` is the cursor of the rows that were not counted, if any."""

    rows: int
    after: UUID | None

    @property
    def text(self) -> str:
        return f"{self.rows:,}"


MAX_ROWS: Final = 5_000
"""Rows in one file. The last line says where the next one begins."""
READING_SECONDS: Final = 2.0
"""How long one request reads: of a filter that finds little, it may have read many rows in vain."""
READ_AT_ONCE: Final = 500
COUNT_AT_ONCE: Final = 2_000
COUNTING_SECONDS: Final = 1.0
"""How long the page of an export counts its rows: of more, it says how many there are at least."""
MEDIA_TYPES: Final[Mapping[str, str]] = {"csv": "text/csv", "jsonl": "application/jsonl"}
_UNSEEN: Final = (
    r"\s\"\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"
)
_FORMULA: Final = re.compile(
    r"^(?=[\t\r\n])"
    rf"|(?:^|(?<=;))(?=[{_UNSEEN}]*[-=+@\uff0b\uff0d\uff1d\uff20])"
    rf"|(?<=[\t\r\n])(?=(?:(?![\t\r\n])[{_UNSEEN}])*[-=+@\uff0b\uff0d\uff1d\uff20])"
)
"""Where a spreadsheet may begin to read a formula: some take a semicolon or a tab, too, for the end of a
cell, drop quotes at its begin, skip white space and unseen characters, or read full-width characters as
the plain ones. After a tab or a line break it looks up to the next one, so that many of them take linear time."""


def read_rows(
    read: Callable[[UUID | None, int], Rows],
    after: UUID | None,
    max_rows: int,
    at_once: int = READ_AT_ONCE,
) -> Rows:
    """Return at most `max_rows` rows, and the cursor of the next one, if there are more."""
    end = time.monotonic() + READING_SECONDS
    rows: list[Row] = []
    while len(rows) < max_rows:
        page, after = read(after, min(at_once, max_rows - len(rows)))
        rows += page
        if after is None or time.monotonic() >= end:
            break
    return rows, after


def count_rows(
    count: Callable[[UUID | None, int], RowCount], after: UUID | None, max_rows: int
) -> RowCount:
    """Count rows after a cursor, at most `max_rows` and for at most COUNTING_SECONDS."""
    end, rows = time.monotonic() + COUNTING_SECONDS, 0
    while rows < max_rows:
        counted = count(after, min(COUNT_AT_ONCE, max_rows - rows))
        rows, after = rows + counted.rows, counted.after
        if after is None or time.monotonic() >= end:
            break
    return RowCount(rows, after)


def encoded_rows(
    columns: Sequence[str], rows: Iterable[Row], form: str, *, head: bool
) -> Iterator[str]:
    """Yield a line for each row: an object of JSON, or cells, below their names."""
    if form == "jsonl":
        yield from (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        return
    if head:
        yield _csv_line(columns)
    for row in rows:
        yield _csv_line([_cell(row[name]) for name in columns])


def end_line(end: Row, form: str) -> str:
    """Return the last line of a file."""
    if form == "jsonl":
        return json.dumps({"end": end}, ensure_ascii=False) + "\n"
    return _csv_line(["end", *(f"{name}={value}" for name, value in end.items())])


def _csv_line(cells: Iterable[str]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\r\n").writerow(cells)
    return buffer.getvalue()


def _cell(value: Any) -> str:
    """Return the text of a cell; an apostrophe defuses what looks like a formula."""
    if isinstance(value, Mapping):
        value = json.dumps(value, ensure_ascii=False) if value else ""
    text = "" if value is None else str(value)
    return _FORMULA.sub("'", text)
