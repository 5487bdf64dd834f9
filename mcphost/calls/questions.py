"""Questions that were sent on the stream of their call, and their answers.

Only the first answer to a question counts. A call waits while a question of its last round is open.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from mcphost.calls.conditions_sql import Effects, effect
from mcphost.calls.models import OpenQuestion, StreamedCall
from mcphost.calls.states import QuestionState
from mcphost.calls.streams import PRUNED_AT_ONCE
from mcphost.feed.services import announce, announce_all

CHANGE_NAME: Final = "answer"
"""The name of the change in the change log: a question of a call was answered."""


class StoredQuestion(NamedTuple):
    """A question to store. `digest` identifies it, `message` is the id of the request to send."""

    id: UUID
    key: str
    digest: str
    method: str
    message: str


class RoundQuestions(NamedTuple):
    """The questions of a round, and until when they can be answered."""

    tenant: UUID
    session: UUID
    call: UUID
    round: int
    questions: Sequence[StoredQuestion]
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class QuestionStatus:
    """The state of a question. `answer` is sealed, and empty unless it was answered."""

    id: UUID
    key: str
    digest: str
    method: str
    message: str
    state: QuestionState
    answer: str


class AnsweredQuestion(NamedTuple):
    """The call of a question that was answered, and the owner process of the call."""

    tenant: UUID
    call: UUID
    owner: UUID | None


class OpenQuestionRow(NamedTuple):
    """A question that was asked before: its call, key and state."""

    call: UUID
    key: str
    state: QuestionState


_ASK: Final = effect(
    "questions",
    {
        "id": "uuid",
        "tenant": "uuid",
        "session": "uuid",
        "call": "uuid",
        "name": "text",
        "digest": "text",
        "round": "bigint",
        "method": "text",
        "message": "text",
        "seconds": "double precision",
    },
    "INSERT INTO calls_openquestion (id, tenant, session, call, key, digest, round, method, message, "  # noqa: S608
    "state, answer, asked_at, expires_at) SELECT r.id, r.tenant, r.session, r.call, r.name, r.digest, "
    f"r.round, r.method, r.message, '{QuestionState.OPEN}', '', {{now}}, {{later}} FROM {{r}} "
    "WHERE {held} ON CONFLICT DO NOTHING",
)
_FORGET: Final = effect(
    "questions_forget",
    {"call": "uuid"},
    "UPDATE calls_openquestion SET message = '', answer = '', "  # noqa: S608
    f"settled_at = CASE WHEN state = '{QuestionState.OPEN}' THEN {{now}} ELSE settled_at END, "
    f"state = CASE WHEN state = '{QuestionState.OPEN}' THEN '{QuestionState.CANCELLED}' "
    "ELSE state END FROM {r} WHERE calls_openquestion.call = r.call AND {held}",
)


def ask_effects(round_questions: RoundQuestions) -> Effects:
    """The effect that writes the questions of a round. A repetition does nothing."""
    shared = {
        "tenant": round_questions.tenant.hex,
        "session": round_questions.session.hex,
        "call": round_questions.call.hex,
        "round": round_questions.round,
        "seconds": max(0.0, (round_questions.expires_at - timezone.now()).total_seconds()),
    }
    return {
        _ASK: [
            {
                **shared,
                "id": question.id.hex,
                "name": question.key,
                "digest": question.digest,
                "method": question.method,
                "message": question.message,
            }
            for question in round_questions.questions
        ]
    }


def forget_effects(call: UUID) -> Effects:
    """The effect that cancels the open questions of a call that is over, and erases all questions
    and answers."""
    return {_FORGET: [{"call": call.hex}]}


@transaction.atomic
def answer(question: UUID, session: UUID, answer: str) -> AnsweredQuestion | None:
    """Store the answer and notify all processes; None if the session has no such open question.

    `answer` is sealed, and so unique: if it is stored already, this is a repetition and succeeds.
    """
    row = OpenQuestion.objects.filter(id=question, session=session)
    open_question = row.filter(state=QuestionState.OPEN, expires_at__gt=Now())
    answered = open_question.update(state=QuestionState.ANSWERED, answer=answer, settled_at=Now())
    if not answered and not row.filter(state=QuestionState.ANSWERED, answer=answer).exists():
        return None
    tenant, call = row.values_list("tenant", "call").get()
    owner = StreamedCall.objects.filter(id=call).values_list("owner", flat=True).first()
    announce(CHANGE_NAME, tenant=tenant, object_id=call.hex)
    return AnsweredQuestion(tenant, call, owner)


def find(question: UUID, session: UUID) -> OpenQuestionRow | None:
    """A question of that session; None if there is none of this id."""
    row = OpenQuestion.objects.filter(id=question, session=session).first()
    return None if row is None else OpenQuestionRow(row.call, row.key, QuestionState(row.state))


def statuses(call: UUID, number: int) -> tuple[QuestionStatus, ...]:
    """The states of the questions of this round."""
    rows = OpenQuestion.objects.filter(call=call, round=number)
    return tuple(
        QuestionStatus(
            row.id,
            row.key,
            row.digest,
            row.method,
            row.message,
            QuestionState(row.state),
            row.answer,
        )
        for row in rows
    )


def any_open(call: UUID, number: int) -> bool:
    """Whether a question of this round is open."""
    return _open(call).filter(round=number).exists()


@transaction.atomic
def expire_digests(tenant: UUID, digests: Sequence[str]) -> bool:
    """Expire the open questions with these digests, and notify all processes of their calls.

    Returns whether there were any.
    """
    which = OpenQuestion.objects.filter(tenant=tenant, digest__in=digests, state=QuestionState.OPEN)
    calls = set(which.values_list("call", flat=True))
    which.update(state=QuestionState.EXPIRED, settled_at=Now())
    if calls:
        announce_all(CHANGE_NAME, [(tenant, call.hex) for call in calls])
    return bool(calls)


def any_of_call(call: UUID) -> bool:
    """Whether a question of the call is open."""
    return _open(call).exists()


def expire(call: UUID, number: int) -> None:
    """Expire the open questions of this round whose time is over."""
    late = _open(call).filter(round=number, expires_at__lte=Now())
    late.update(state=QuestionState.EXPIRED, settled_at=Now())


def cancel(call: UUID) -> None:
    """Cancel the open questions of a call that is over."""
    _open(call).update(state=QuestionState.CANCELLED, settled_at=Now())


def _open(call: UUID) -> QuerySet[OpenQuestion]:
    return OpenQuestion.objects.filter(call=call, state=QuestionState.OPEN)


@transaction.atomic
def prune() -> int:
    """Delete up to 500 expired questions of calls that are over; return how many."""
    goes_on = StreamedCall.objects.filter(id=OuterRef("call")).exclude(request="")
    over = OpenQuestion.objects.filter(~Exists(goes_on), expires_at__lt=Now())
    ids = list(over.order_by("expires_at").values_list("id", flat=True)[:PRUNED_AT_ONCE])
    OpenQuestion.objects.filter(id__in=ids).delete()
    return len(ids)
