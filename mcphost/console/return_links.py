"""Return from a page that changes a row to the filtered list that it was opened from, at that row.

Links from a list carry its query string (`{{ kept }}`), forms on a list have it in a hidden field.
Only the query string travels, never an address. The row is marked by the fragment of the URL
(`tr:target`); lists that can be filtered show it, by `CHANGED`, also if it no longer matches.
"""

from typing import Final
from urllib.parse import quote, urlencode

from django.core.exceptions import TooManyFieldsSent
from django.http import HttpRequest, QueryDict
from django.urls import reverse

CARRIED: Final = "list"
CHANGED: Final = "changed"
AT: Final = "at"
MAX_QUERY: Final = 1000
"""Characters of a query string, encoded. A longer one is not carried."""


def from_here(request: HttpRequest) -> str:
    """Return, on a list, what its links to the pages of rows end with."""
    return _carrying(_without_row(request.GET.urlencode()))


def carried(request: HttpRequest) -> str:
    """Return, on the page of a row, what its links to further pages of the row end with."""
    return _carrying(_query(request))


def named_list_url(
    request: HttpRequest, name: str, *args: object, row: str = "", changed: str = ""
) -> str:
    """Return the URL of the list of that name as it was filtered, at the row with the id `row`."""
    return list_url(request, reverse(name, args=args), row=row, changed=changed)


def list_url(request: HttpRequest, url: str, *, row: str = "", changed: str = "") -> str:
    """Return the URL of a list as it was filtered.

    The query string of `url` is that of the list where the page was not opened from it.
    """
    url, _, unfiltered = url.partition("?")
    query = _query(request) or unfiltered
    if changed and query:
        query = f"{query}&{urlencode({CHANGED: changed})}"
    return url + (f"?{query}" if query else "") + (f"#{quote(row)}" if row else "")


def list_with(url: str, cursor: str) -> str:
    """Return the URL of the page of a paged list which has the row with this cursor."""
    return f"{url}?{urlencode({AT: cursor})}"


def row_url(request: HttpRequest, name: str, *args: object) -> str:
    """Return the URL of a page of a row, which still knows the list."""
    return reverse(name, args=args) + carried(request)


def is_changed(request: HttpRequest, row: object) -> bool:
    """Return whether this row was just changed, by the URL of the list."""
    return request.GET.get(CHANGED, "") == str(row)


def _query(request: HttpRequest) -> str:
    return _without_row(request.POST.get(CARRIED) or request.GET.get(CARRIED, ""))


def _without_row(query: str) -> str:
    if not query or len(query) > MAX_QUERY:
        return ""
    try:
        parameters = QueryDict(query.replace("\0", ""), mutable=True)
    except TooManyFieldsSent:
        return ""
    parameters.pop(CHANGED, None)
    encoded = parameters.urlencode()
    return encoded if len(encoded) <= MAX_QUERY else ""


def _carrying(query: str) -> str:
    return f"?{urlencode({CARRIED: query})}" if query else ""
