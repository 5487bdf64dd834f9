"""Pages of lists that are sorted by a name."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

from django.db.models import Model, QuerySet
from django.http import QueryDict

from mcphost.console.base import query_text

Row = TypeVar("Row", bound=Model)
_MAX_NAME = 200


@dataclass(frozen=True, slots=True)
class NamePage(Generic[Row]):
    """Rows by name, and the query strings of the pages beside them; empty where there is none."""

    rows: list[Row]
    following: str
    previous: str


def page_by_name(
    queryset: QuerySet[Row], field: str, query: QueryDict, filters: Mapping[str, str], size: int
) -> NamePage[Row]:
    """Return the page that a URL asks for: after a name, or before one. `filters` is the filter.

    With `at`, the page that has this name: the first one, or else the page that begins with it.
    """
    after, before, at = (query_text(query, name, _MAX_NAME) for name in ("after", "before", "at"))
    narrow = {name: text for name, text in filters.items() if text}

    def link(name: str, row: Any) -> str:
        return urlencode({**narrow, name: getattr(row, field)})

    if before:
        rows = list(queryset.filter(**{f"{field}__lt": before}).order_by(f"-{field}")[: size + 1])
        shown = rows[:size][::-1]
        earlier = link("before", shown[0]) if len(rows) > size else ""
        return NamePage(shown, link("after", shown[-1]) if shown else urlencode(narrow), earlier)
    if at and queryset.filter(**{f"{field}__lt": at})[:size].count() < size:
        at = ""
    if after:
        queryset = queryset.filter(**{f"{field}__gt": after})
    elif at:
        queryset = queryset.filter(**{f"{field}__gte": at})
    rows = list(queryset.order_by(field)[: size + 1])
    following = link("after", rows[size - 1]) if len(rows) > size else ""
    previous = link("before", rows[0]) if (after or at) and rows else ""
    return NamePage(rows[:size], following, previous)
