"""The page that searches the texts of questions and answers, for auditors, and the parts of a search."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Final
from uuid import UUID

from django.core import signing
from django.http import HttpResponseBase, JsonResponse
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from mcphost.audit.selectors import time_of
from mcphost.console.base import SignedInRequest, of_tenant, page_of, query_text, show
from mcphost.console.invisible_characters import shown_page
from mcphost.console.records.filters import RecordFilter
from mcphost.console.records.input_request_rows import (
    filter_of,
    is_shown,
    question_filter,
    with_texts,
)
from mcphost.console.records.pills import OF_QUESTIONS, QUESTION_LABELS, pills
from mcphost.console.records.question_searches import (
    SearchBusyError,
    SearchEndedError,
    SearchPart,
    begin_search,
    search_part,
)
from mcphost.listings.input_requests import listed_rows
from mcphost.listings.question_texts import QuestionTexts
from mcphost.tenants.models import Tenant
from mcphost.tenants.roles import Permission

MAX_WORDS: Final = 10
AROUND: Final = 70
"""Characters of a text that are shown before a match."""
_SALT: Final = "mcphost.console.records.input_request_search"
_BUSY: Final = "Another search of yours is running. Stop it first."
_ENDED: Final = "You have begun another search. This one has ended."


@of_tenant(Permission.VIEW_PAYLOADS)
@require_safe
def page(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Show the page that searches questions and answers."""
    record_filter = filter_of(RecordFilter.of(request.GET))
    chips = pills(record_filter, of_all_tenants=False, names=OF_QUESTIONS, labels=QUESTION_LABELS)
    crumb = page_of(tenant, "input_requests", "Questions")
    return show(
        request,
        "records/input_request_search.html",
        "Search questions",
        crumb,
        record_filter=record_filter,
        active_pills=[pill for pill in chips if pill.shown_value],
        back=f"{crumb.url}?{record_filter.query}" if record_filter.query else crumb.url,
        part_url=reverse("admin:input_request_search_part", args=[tenant.slug]),
    )


@of_tenant(Permission.VIEW_PAYLOADS)
@require_POST
def part(request: SignedInRequest, tenant: Tenant) -> HttpResponseBase:
    """Begin a search, or go on with it where its last part stopped."""
    record_filter = filter_of(RecordFilter.of(request.GET))
    words = query_text(request.POST, "words").split()[:MAX_WORDS]
    if record_filter.unknown or not words:
        reason = " ".join(record_filter.unknown) or "Say what to search for."
        return JsonResponse({"error": reason}, status=400)
    # What goes on is bound to the auditor, the tenant, the filter and the words that were recorded.
    salt = f"{_SALT}:{request.user.pk}:{tenant.pk}:{record_filter.query}:{' '.join(words)}"
    try:
        search, after, total = _position(request, tenant, record_filter, words, salt)
        filters = question_filter(record_filter, frozenset({tenant.pk}), timezone.now())
        part = search_part(request.user, search, filters, words, after)
    except signing.BadSignature:
        return JsonResponse({"error": "This is no part of a search of yours."}, status=400)
    except SearchBusyError:
        return JsonResponse({"error": _BUSY, "busy": True}, status=409)
    except SearchEndedError:
        return JsonResponse({"error": _ENDED}, status=409)
    total += part.searched
    position = [str(search), part.after and str(part.after), total]
    return JsonResponse(
        {
            "rows": _rows(part, record_filter, words),
            "searched": total,
            "at": part.after and time_of(part.after).isoformat(),
            "next": part.after and signing.dumps(position, salt=salt),
        }
    )


def _position(
    request: SignedInRequest,
    tenant: Tenant,
    record_filter: RecordFilter,
    words: Sequence[str],
    salt: str,
) -> tuple[UUID, UUID | None, int]:
    """Where the part begins: which search, after which question, and how many were searched before."""
    text = request.POST.get("next", "")
    if not text:
        search = begin_search(request.user, tenant.pk, words, record_filter.active_filters)
        return search, None, 0
    search_text, after, total = signing.loads(text, salt=salt)
    return UUID(search_text), UUID(after), total


def _rows(part: SearchPart, record_filter: RecordFilter, words: Sequence[str]) -> list[str]:
    """The rows of the matches, as HTML."""
    texts = {question.id: around(of_question, words) for question, of_question in part.matches}
    rows = listed_rows([question for question, _ in part.matches], timezone.now())
    shown = [row for row in with_texts(rows, texts) if is_shown(row, record_filter)]
    template = "console/records/input_request_row.html"
    return [
        shown_page(render_to_string(template, {"row": row, "tenant": True}).strip())
        for row in shown
    ]


def around(texts: QuestionTexts, words: Sequence[str]) -> QuestionTexts:
    """Return the parts of both texts around the first match in each."""
    return QuestionTexts(*(_from_match(text, words) for text in texts))


def _from_match(text: str, words: Sequence[str]) -> str:
    folded = text.casefold()
    first = min((at for term in words if (at := folded.find(term.casefold())) >= 0), default=0)
    # Folded texts may be longer, as “ß” is: the match is where so many folded characters come before.
    ends = list(accumulate(len(character.casefold()) for character in text))
    begin = max(0, bisect_right(ends, first) - AROUND)
    return f"…{text[begin:]}" if begin else text
