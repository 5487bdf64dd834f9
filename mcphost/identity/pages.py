"""Pages of lists that go from new to old; a page begins beside a row that the URL names."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

from django.core.exceptions import ValidationError
from django.db.models import Case, F, Model, Q, QuerySet, Value, When

M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class RowPage(Generic[M]):
    """Rows, newest first, and the ids between which the next pages lie; empty where there is none."""

    rows: Sequence[M]
    after: str
    before: str


def page_beside(
    query: QuerySet[M],
    *,
    after: str = "",
    before: str = "",
    at: str = "",
    limit: int,
    last: Q | None = None,
) -> RowPage[M] | None:
    """Return the rows that are older than the row `after`, or newer than `before`.

    With `at`, the page that has this row: the first one, or else the page that begins with it. None
    if the query has no row of that id. The model has `created_at`. Those that `last` selects come after all others.
    """
    anchor = after or before or at
    part = Value(0) if last is None else Case(When(last, then=1), default=0)
    query = cast("QuerySet[M]", query.alias(part=part))  # the stubs forget the model
    anchor_part, created_at = None, None
    if anchor:
        # What is no id names no row.
        with suppress(ValidationError):
            row = query.annotate(of_part=F("part")).filter(pk=anchor)
            values = row.values_list("of_part", "created_at").first()
            anchor_part, created_at = values or (None, None)
    if anchor and created_at is None:
        return None
    newer = Q(created_at__gt=created_at) | Q(created_at=created_at, pk__lt=anchor)
    newer = Q(part__lt=anchor_part) | Q(part=anchor_part) & newer
    if before:
        rows = list(query.filter(newer).order_by("-part", "created_at", "-pk")[: limit + 1])
        shown = rows[:limit][::-1]
        oldest = str(shown[-1].pk) if shown else ""
        return RowPage(shown, oldest, str(shown[0].pk) if len(rows) > limit else "")
    if at and query.filter(newer)[:limit].count() < limit:
        anchor = ""
    if anchor:
        older = Q(created_at__lt=created_at) | Q(created_at=created_at, pk__gt=anchor)
        older = Q(part__gt=anchor_part) | Q(part=anchor_part) & older
        query = query.filter(older | Q(pk=at) if at else older)
    rows = list(query.order_by("part", "-created_at", "pk")[: limit + 1])
    newer_than = str(rows[0].pk) if rows and anchor else ""
    return RowPage(rows[:limit], str(rows[limit - 1].pk) if len(rows) > limit else "", newer_than)
