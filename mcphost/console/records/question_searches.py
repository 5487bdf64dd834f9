"""Search the texts of questions and answers: decrypt them, the newest first, a part at a time.

Payloads are encrypted, and no index of their words is kept. A part is one request and ends after
PART_SECONDS; the next one goes on where it stopped. An auditor has one search at a time: a new one ends the one
before, and two parts never run at once. Each search is one entry of the audit log; its words are the payload.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from mcphost.audit import question_list
from mcphost.audit.question_list import QuestionFilter, RecordedQuestion
from mcphost.audit.records import Actor
from mcphost.audit.services import record_with_payload
from mcphost.console.models import QuestionSearch
from mcphost.listings.question_texts import QuestionTexts, whole_texts_of
from mcphost.tenants.access import lock_tenant
from mcphost.tenants.roles import Permission

QUESTIONS_SEARCHED = "questions.searched"
PART_SECONDS: Final = 1.0
"""After how long a part begins no further page."""
AT_ONCE: Final = 50
"""Questions of one page: they are decrypted together."""
MAX_MATCHES: Final = 50
"""After so many matches a part ends."""
LEASE: Final = timedelta(seconds=30)
"""For how long a part that never ends keeps the next one from beginning."""


class SearchBusyError(Exception):
    """Another part of a search of this auditor is running."""


class SearchEndedError(Exception):
    """The auditor has begun another search."""


@dataclass(frozen=True, slots=True)
class SearchPart:
    """What one part found. `after` is where the next one goes on, None at the end."""

    matches: Sequence[tuple[RecordedQuestion, QuestionTexts]]
    searched: int
    after: UUID | None


def begin_search(user: User, tenant: UUID, words: Sequence[str], facts: Mapping[str, str]) -> UUID:
    """Begin a search, and record it; an earlier one of the auditor ends. `facts` are its filters.

    Raises PermissionDenied if the user is no auditor of the tenant any more, and SearchBusyError.
    """
    search, now = uuid4(), timezone.now()
    actor = Actor.person(user.pk, user.get_username())
    with transaction.atomic():
        lock_tenant(tenant, actor, Permission.VIEW_PAYLOADS)
        row, _ = QuestionSearch.objects.select_for_update().get_or_create(
            auditor=user, defaults={"search": search, "begun_at": now, "busy_until": now}
        )
        if row.busy_until > now:
            raise SearchBusyError
        row.search, row.begun_at = search, now
        row.save()
        record_with_payload(
            QUESTIONS_SEARCHED,
            {"words": " ".join(words)},
            actor=actor,
            tenant=tenant,
            target="questions",
            facts=facts,
        )
    return search


def search_part(
    user: User, search: UUID, filters: QuestionFilter, words: Sequence[str], after: UUID | None
) -> SearchPart:
    """Search one part, older than `after`, of the questions of one tenant that a filter selects.

    Raises SearchEndedError and SearchBusyError.
    """
    own = QuestionSearch.objects.filter(auditor=user, search=search)
    now = timezone.now()
    if not own.filter(busy_until__lte=now).update(busy_until=now + LEASE):
        raise SearchBusyError if own.exists() else SearchEndedError
    try:
        return _search(filters, words, after)
    finally:
        own.update(busy_until=now)


def _search(filters: QuestionFilter, words: Sequence[str], after: UUID | None) -> SearchPart:
    assert filters.tenants is not None
    (tenant,) = filters.tenants
    end, searched = time.monotonic() + PART_SECONDS, 0
    matches: list[tuple[RecordedQuestion, QuestionTexts]] = []
    while True:
        page = question_list.questions(filters, timezone.now(), after=after, limit=AT_ONCE)
        texts = whole_texts_of(page.questions, tenant)
        searched += len(page.questions)
        matches += [
            (question, texts[question.id])
            for question in page.questions
            if texts[question.id].contains(words)
        ]
        after = page.after
        if after is None or time.monotonic() >= end or len(matches) >= MAX_MATCHES:
            return SearchPart(matches, searched, after)
