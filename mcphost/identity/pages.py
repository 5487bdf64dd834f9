"""Pages of lists that go from new to old; a page begins beside a row that the URL names."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, cast

from django.core.exceptions import ValidationError
from django.db.models import Case, Model, Q, QuerySet, Value, When

M = TypeVar("M", bound=Model)
_LAST: Final = "last:"
"""How the cursors of rows begin that come after all others."""


@dataclass(frozen=True, slots=True)
class RowPage(Generic[M]):
    """Rows, newest first, and the ids between which the next pages lie; empty where there is none."""

    rows: Sequence[M]
    after: str
    before: str


@dataclass(frozen=True, slots=True)
class ListedRows(Generic[M]):
    """The rows of a list. The model has `created_at`.

    `among` also has rows that the list leaves out, which cursors of earlier pages may name; by default there are
    none. Rows that `last` selects come after all others; a cursor says where its row stood, because it may have
    come to them meanwhile.
    """

    rows: QuerySet[M]
    among: QuerySet[M] | None = None
    last: Q | None = None


def page_beside(
    listed: ListedRows[M], *, after: str = "", before: str = "", at: str = "", limit: int
) -> RowPage[M] | None:
    """Return the rows that are older than the row `after`, or newer than `before`: cursors of another page.

    With `at`, the id of a row, the page that has it: the first one, or else the page that begins with it. None
    if there is no such row.
    """
    cursor = after or before or at
    part = Value(0) if listed.last is None else Case(When(listed.last, then=1), default=0)
    query = cast("QuerySet[M]", listed.rows.annotate(part=part))  # the stubs forget the model
    among = query if listed.among is None else listed.among.annotate(part=part)
    anchor = cursor.removeprefix(_LAST)
    position = None
    with suppress(ValidationError):  # what is no id names no row
        position = among.filter(pk=anchor).values_list("part", "created_at").first()
    if cursor and position is None:
        return None
    anchor_part, created_at = position or (0, None)
    if not at:
        anchor_part = int(cursor.startswith(_LAST))
    newer = Q(created_at__gt=created_at) | Q(created_at=created_at, pk__lt=anchor)
    newer = Q(part__lt=anchor_part) | Q(part=anchor_part) & newer
    if before:
        rows = list(query.filter(newer).order_by("-part", "created_at", "-pk")[: limit + 1])
        shown = rows[:limit][::-1]
        oldest = _cursor(shown[-1]) if shown else ""
        return RowPage(shown, oldest, _cursor(shown[0]) if len(rows) > limit else "")
    if at and query.filter(newer)[:limit].count() < limit:
        anchor = ""
    if anchor:
        older = Q(created_at__lt=created_at) | Q(created_at=created_at, pk__gt=anchor)
        older = Q(part__gt=anchor_part) | Q(part=anchor_part) & older
        query = query.filter(older | Q(pk=at) if at else older)
    rows = list(query.order_by("part", "-created_at", "pk")[: limit + 1])
    newer_than = _cursor(rows[0]) if rows and anchor else ""
    return RowPage(rows[:limit], _cursor(rows[limit - 1]) if len(rows) > limit else "", newer_than)


def _cursor(row: Any) -> str:
    return f"{_LAST if row.part else ''}{row.pk}"
