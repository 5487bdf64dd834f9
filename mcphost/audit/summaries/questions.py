"""Make the rows of the questions of a call, from its timeline."""

from collections.abc import Iterator, Sequence
from typing import Final
from uuid import UUID

from mcphost.audit.entries import EntryView
from mcphost.audit.models import QuestionSummary
from mcphost.audit.timeline import TimelineQuestion, key_of

MAX_NAME: Final = 1000
"""In bytes of UTF-8. Longer names are cut: PostgreSQL cannot index them."""
REPLACED: Final = tuple(
    field.name for field in QuestionSummary._meta.fields if not field.primary_key
)
"""The columns that are written again when the row of a question is."""


def question_rows(questions: Sequence[TimelineQuestion], last: UUID) -> Iterator[QuestionSummary]:
    """Yield a row for each question of a call; `last` is the entry that determines the state of the call."""
    for question in questions:
        entry, answer = question.entry, next(iter(question.answers), None)
        if entry.call is None:
            continue
        row = QuestionSummary(
            id=entry.id,
            at=entry.at,
            tenant=entry.tenant,
            call=entry.call,
            last=last,
            round=entry.round or 0,
            key=key_of(entry),
            method=str(entry.facts.get("method", "")),
            mode=str(entry.facts.get("mode", "")),
            target=_cut(entry.target),
            target_version=entry.target_version,
            actor_kind=entry.actor_kind,
            actor_id=entry.actor_id,
            caller=_cut(_name(entry)),
            token_id=entry.token_id,
            client_name=_cut(entry.client_name),
            client_version=entry.client_version,
            delivery=entry.delivery,
            state=question.outcome,
            expires_at=question.expires_at,
        )
        if answer is not None:
            seconds = answer.seconds
            row.answer = answer.entry.id
            row.answered_at = answer.entry.at
            row.answered_by = _name(answer.entry)
            row.evidence = str(answer.entry.facts.get("evidence", ""))
            row.took_ms = None if seconds is None else round(1000 * seconds)
            row.ran = "" if answer.ran is None else answer.ran.outcome
        yield row


def _name(entry: EntryView) -> str:
    """The actor of an entry, as rows of calls name it."""
    return entry.actor_label or entry.actor_id or entry.actor_kind


def _cut(name: str) -> str:
    return name.encode()[:MAX_NAME].decode(errors="ignore")
