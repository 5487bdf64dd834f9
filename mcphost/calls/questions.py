"""Questions that were sent on the stream of their call, and the answers that came to them.

A question is answered once, by whoever comes first; a call waits until none of those that its last
round asked is open.
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

from mcphost.calls.models import OpenQuestion, StreamedCall
from mcphost.calls.states import QuestionState
from mcphost.calls.streams import PRUNED_AT_ONCE
from mcphost.feed.services import announce

NEWS: Final = "answer"
"""What the feed calls it that a question of a call was answered."""


class Question(NamedTuple):
    """A question as it is asked. `digest` names it, `message` is the request that is sent, sealed."""

    id: UUID
    key: str
    digest: str
    method: str
    message: str


class Asked(NamedTuple):
    """What a round asks, until when."""

    tenant: UUID
    session: UUID
    call: UUID
    round: int
    questions: Sequence[Question]
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Standing:
    """How a question stands. `answer` is sealed, and empty unless it was answered."""

    id: UUID
    key: str
    digest: str
    method: str
    message: str
    state: QuestionState
    answer: str


class Taken(NamedTuple):
    """Of which call a question was that was answered, and which process has that."""

    tenant: UUID
    call: UUID
    owner: UUID | None


class Found(NamedTuple):
    """A question that was asked once: of which call, under which key, and how it stands."""

    call: UUID
    key: str
    state: QuestionState


def ask(asked: Asked) -> None:
    """Write what a round asks. In the caller's transaction; a second time does nothing."""
    now = timezone.now()
    rows = [
        OpenQuestion(
            **each._asdict(),
            tenant=asked.tenant,
            session=asked.session,
            call=asked.call,
            round=asked.round,
            state=QuestionState.OPEN,
            asked_at=now,
            expires_at=asked.expires_at,
        )
        for each in asked.questions
    ]
    OpenQuestion.objects.bulk_create(rows, ignore_conflicts=True)


@transaction.atomic
def answer(question: UUID, session: UUID, answer: str) -> Taken | None:
    """Keep the answer and tell every process; None if the question is not open, or not the session's."""
    row = OpenQuestion.objects.filter(id=question, session=session)
    mine = row.filter(state=QuestionState.OPEN, expires_at__gt=Now())
    if not mine.update(state=QuestionState.ANSWERED, answer=answer, settled_at=Now()):
        return None
    tenant, call = row.values_list("tenant", "call").get()
    owner = StreamedCall.objects.filter(id=call).values_list("owner", flat=True).first()
    announce(NEWS, tenant=tenant, object_id=call.hex)
    return Taken(tenant, call, owner)


def find(question: UUID, session: UUID) -> Found | None:
    """A question of that session, None if nothing is known of it."""
    row = OpenQuestion.objects.filter(id=question, session=session).first()
    return None if row is None else Found(row.call, row.key, QuestionState(row.state))


def standing(call: UUID, number: int) -> tuple[Standing, ...]:
    """How the questions stand that this round asked."""
    rows = OpenQuestion.objects.filter(call=call, round=number)
    return tuple(
        Standing(
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
    """Whether an answer is missing of those that this round asked for."""
    return _open(call).filter(round=number).exists()


def expire(call: UUID, number: int) -> None:
    """Nobody waits any longer for the answers whose time is over."""
    late = _open(call).filter(round=number, expires_at__lte=Now())
    late.update(state=QuestionState.EXPIRED, settled_at=Now())


def cancel(call: UUID) -> None:
    """The call is over: nobody waits for answers any more."""
    _open(call).update(state=QuestionState.CANCELLED, settled_at=Now())


def forget(call: UUID) -> None:
    """The call is over: what was asked and answered is known no more, only that it was."""
    cancel(call)
    OpenQuestion.objects.filter(call=call).update(message="", answer="")


def _open(call: UUID) -> QuerySet[OpenQuestion]:
    return OpenQuestion.objects.filter(call=call, state=QuestionState.OPEN)


@transaction.atomic
def prune() -> int:
    """Forget up to 500 questions whose time and whose call is over; return how many there were."""
    goes_on = StreamedCall.objects.filter(id=OuterRef("call")).exclude(request="")
    over = OpenQuestion.objects.filter(~Exists(goes_on), expires_at__lt=Now())
    ids = list(over.order_by("expires_at").values_list("id", flat=True)[:PRUNED_AT_ONCE])
    OpenQuestion.objects.filter(id__in=ids).delete()
    return len(ids)
