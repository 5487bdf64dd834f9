"""The owner of a call on a stream, and the start and end of its rounds."""

import threading
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.db.models import F
from django.utils import timezone

from mcphost.calls import questions, session_calls
from mcphost.calls.models import OpenQuestion, StreamedCall
from mcphost.calls.questions import RoundQuestions, StoredQuestion
from mcphost.calls.session_calls import (
    NO_OWNER,
    Batch,
    CallOwner,
    StoredCall,
    SupersededError,
    WaitingCall,
)
from mcphost.calls.states import CallState, QuestionState
from mcphost.calls.streams import Event, StreamRow
from mcphost.feed import nodes
from mcphost.feed.models import Change, Node
from tests.audit.databases import record, stored
from tests.calls.conftest import Start
from tests.calls.losing import after_the_commit, before_the_commit, lose_connections
from tests.calls.made import TENANT, submit

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = timedelta(hours=1)


def _batch(*numbers: int) -> Batch:
    return Batch([Event(each, f"message {each}") for each in numbers], HOUR)


class Made:
    """A call on a stream, and its owner."""

    def __init__(self) -> None:
        self.taking = CallOwner(uuid4(), uuid4(), 1)
        self.stream = StreamRow(uuid4(), TENANT, uuid4())
        self.opening = StoredCall(self.taking.call, f"name {self.taking.call}", "sealed")
        session_calls.begin(self.taking, self.stream, self.opening, _batch(1))

    @property
    def row(self) -> StreamedCall:
        return StreamedCall.objects.get(id=self.taking.call)

    def waiting(self, number: int = 1, count: int = 1) -> WaitingCall:
        asked = [
            StoredQuestion(uuid4(), f"key{n}", "digest", "roots/list", "sealed")
            for n in range(count)
        ]
        until = timezone.now() + HOUR
        call, session = self.taking.call, self.stream.session
        return WaitingCall("journal", RoundQuestions(TENANT, session, call, number, asked, until))

    def ask(self, waiting: WaitingCall, *numbers: int) -> None:
        session_calls.ask(self.taking, self.stream, _batch(*numbers), waiting)

    def dies(self) -> None:
        before = F("taken_at") - HOUR
        StreamedCall.objects.filter(id=self.taking.call).update(taken_at=before)

    def start(self, number: int, taking: CallOwner | None = None) -> tuple[Any, list[Any]]:
        return session_calls.start_round(taking or self.taking, number), [record()]

    def conclude(self, number: int, taking: CallOwner | None = None) -> tuple[Any, list[Any]]:
        taking = taking or self.taking
        return session_calls.conclude_round(taking, number, lambda: "reply"), [record()]


def test_a_round_begins_once_where_its_call_waits(start: Start) -> None:
    made, writer = Made(), start()
    assert submit(writer, made.start(2)) == [False]
    made.ask(made.waiting(), 2)
    others = made.taking._replace(epoch=2), made.taking._replace(owner=uuid4())
    assert submit(writer, *(made.start(2, each) for each in others[:1])) == [False]
    assert submit(writer, made.start(2, others[1])) == [False]
    assert submit(writer, made.start(3)) == [False]
    begins = made.start(2)
    assert submit(writer, begins) == [True]
    assert submit(writer, made.start(2)) == [False]
    assert stored() == {one.id for one in begins[1]}
    assert (made.row.state, made.row.round) == (CallState.RUNNING, 2)


def test_a_round_ends_once_and_with_its_record(start: Start) -> None:
    made, writer = Made(), start()
    late, lost = made.conclude(1), made.conclude(1, made.taking._replace(epoch=2))
    assert submit(writer, lost) == [False]
    assert submit(writer, made.conclude(2)) == [False]
    ends = made.conclude(1)
    assert submit(writer, ends) == [True]
    assert submit(writer, late) == [False]
    assert made.row.reply == "reply"
    assert stored() == {one.id for one in ends[1]}


@pytest.mark.parametrize("loss", [after_the_commit, before_the_commit])
def test_a_connection_that_is_lost_in_a_commit_does_not_end_a_round_twice(
    start: Start, monkeypatch: pytest.MonkeyPatch, loss: Any
) -> None:
    made, writer = Made(), start()
    lose_connections(monkeypatch, loss)
    assert submit(writer, made.conclude(1)) == [True]
    made.ask(made.waiting(), 2)
    lose_connections(monkeypatch, loss)
    writer._sink = None
    assert submit(writer, made.start(2)) == [True]


def test_rounds_of_many_calls_are_told_apart_in_one_batch(start: Start) -> None:
    every, writer = [Made() for _ in range(20)], start()
    for one in every[::2]:
        one.ask(one.waiting(), 2)
    fates = submit(writer, *(one.start(2) for one in every))
    assert fates == [True, False] * 10


def test_what_is_asked_is_written_once_and_the_call_waits() -> None:
    made = Made()
    waiting = made.waiting(count=2)
    made.ask(waiting, 2, 3)
    made.ask(waiting, 2, 3)
    assert (made.row.state, made.row.journal) == (CallState.WAITING, "journal")
    assert OpenQuestion.objects.count() == 2
    with pytest.raises(SupersededError):
        session_calls.ask(made.taking._replace(epoch=2), made.stream, _batch(4), made.waiting())
    with pytest.raises(SupersededError):
        made.ask(made.waiting(number=2), 4)


def test_asking_may_be_the_first_that_is_heard_of_a_call() -> None:
    made = Made()
    taking, stream = CallOwner(uuid4(), uuid4(), 1), StreamRow(uuid4(), TENANT, uuid4())
    opening = StoredCall(taking.call, "name", "sealed")
    asked = made.waiting().asked._replace(call=taking.call)
    session_calls.ask(taking, stream, _batch(1, 2), WaitingCall("journal", asked), opening)
    assert StreamedCall.objects.get(id=taking.call).state == CallState.WAITING


def test_a_call_is_taken_from_the_dead_only() -> None:
    made, me = Made(), uuid4()
    assert session_calls.Takeover(made.taking.call, me)() is None  # its lease is not over
    made.dies()
    Node.objects.create(
        id=made.taking.owner, name="n", started_at=timezone.now(), seen_at=timezone.now()
    )
    assert session_calls.orphans(me) == ()
    Node.objects.all().delete()
    assert session_calls.orphans(made.taking.owner) == ()
    assert session_calls.orphans(me) == (made.taking.call,)
    assert session_calls.orphans(me, stream=made.stream.id) == (made.taking.call,)
    assert session_calls.orphans(me, stream=uuid4()) == ()
    taken_over = session_calls.Takeover(made.taking.call, me)()
    assert taken_over is not None
    assert taken_over.owner == CallOwner(made.taking.call, me, 2)
    assert (taken_over.last, taken_over.round, taken_over.state) == (1, 1, CallState.RUNNING)
    assert session_calls.Takeover(made.taking.call, uuid4())() is None
    with pytest.raises(SupersededError):
        session_calls.append(made.taking, made.stream, _batch(2))


def test_a_taking_whose_commit_was_not_confirmed_is_recognized_by_the_process_that_made_it() -> (
    None
):
    made, me = Made(), uuid4()
    made.dies()
    takeover = session_calls.Takeover(made.taking.call, me)
    taken_over = takeover()
    assert taken_over is not None
    assert takeover() == taken_over
    assert session_calls.Takeover(made.taking.call, me)() is None
    made.dies()
    other = uuid4()
    assert session_calls.Takeover(made.taking.call, other)() is not None
    assert takeover() is None, "another process has it since"


def test_no_call_is_taken_by_a_process_that_cannot_tell_who_is_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, me = Made(), uuid4()
    made.dies()
    monkeypatch.setattr(nodes, "can_judge", lambda: False)
    assert session_calls.orphans(me) == ()
    assert session_calls.Takeover(made.taking.call, me)() is None
    monkeypatch.setattr(nodes, "can_judge", lambda: True)
    assert session_calls.orphans(me) == (made.taking.call,)


def test_what_is_over_is_taken_by_nobody() -> None:
    made = Made()
    session_calls.finish(made.taking, made.stream, _batch(2))
    made.dies()
    assert session_calls.orphans(uuid4()) == ()


def test_of_many_that_would_have_a_call_one_gets_it() -> None:
    made = Made()
    made.dies()
    won: list[UUID] = []
    together = threading.Barrier(6)

    def take(process: UUID) -> None:
        together.wait(10)
        try:
            if session_calls.Takeover(made.taking.call, process)() is not None:
                won.append(process)
        finally:
            connection.close()

    threads = [threading.Thread(target=take, args=(uuid4(),)) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(30)
    assert len(won) == 1
    assert (made.row.owner, made.row.epoch) == (won[0], 2)


def test_only_what_waits_is_let_go() -> None:
    made = Made()
    session_calls.release(made.taking, TENANT, told=True)
    assert made.row.owner == made.taking.owner
    made.ask(made.waiting(), 2)
    session_calls.release(made.taking, TENANT, told=False)
    assert made.row.owner == NO_OWNER
    assert not Change.objects.filter(what=session_calls.RELEASED).exists()
    taken_over = session_calls.Takeover(made.taking.call, uuid4())()
    assert taken_over is not None
    session_calls.release(taken_over.owner, TENANT, told=True)
    (news,) = Change.objects.filter(what=session_calls.RELEASED)
    assert news.object_id == made.taking.call.hex


def test_what_is_called_off_is_that_for_everybody() -> None:
    made, other = Made(), Made()
    waiting = made.waiting()
    made.ask(waiting, 2)
    session, name = made.stream.session, made.opening.request_name
    session_calls.cancel(uuid4(), TENANT, name)
    assert made.row.state == CallState.WAITING
    session_calls.cancel(session, TENANT, name)
    assert (made.row.state, other.row.state) == (CallState.CANCELLED, CallState.RUNNING)
    (question,) = OpenQuestion.objects.all()
    assert question.state == QuestionState.CANCELLED
    assert questions.answer(question.id, session, "sealed") is None
    session_calls.append(made.taking, made.stream, _batch(3))  # the owner may not know of it yet
    with pytest.raises(SupersededError):
        made.ask(made.waiting(), 4)
    session_calls.finish(made.taking, made.stream, _batch(4), CallState.CANCELLED)
    assert made.row.request == ""


def test_a_question_is_answered_once_in_time_and_by_its_session() -> None:
    made = Made()
    waiting = made.waiting(count=3)
    made.ask(waiting, 2)
    first, second, third = (each.id for each in waiting.asked.questions)
    call, session = made.taking.call, made.stream.session
    assert questions.answer(first, uuid4(), "a") is None
    taken = questions.answer(first, session, "a")
    assert taken == questions.AnsweredQuestion(TENANT, call, made.taking.owner)
    assert questions.answer(first, session, "b") is None
    assert questions.answer(first, session, "a") == taken, "the very same, sealed: nobody was told"
    past = timezone.now() - HOUR
    OpenQuestion.objects.filter(id=second).update(expires_at=past)
    assert questions.answer(second, session, "a") is None
    questions.expire(call, 1)
    assert questions.any_open(call, 1)
    questions.cancel(call)
    assert not questions.any_open(call, 1)
    states = {each.id: each.state for each in questions.statuses(call, 1)}
    assert states == {
        first: QuestionState.ANSWERED,
        second: QuestionState.EXPIRED,
        third: QuestionState.CANCELLED,
    }
    assert questions.find(first, session) == questions.FoundQuestion(
        call, "key0", QuestionState.ANSWERED
    )
    assert questions.find(first, uuid4()) is None


def test_questions_are_forgotten_when_their_time_and_their_call_are_over() -> None:
    made = Made()
    made.ask(made.waiting(), 2)
    OpenQuestion.objects.update(expires_at=timezone.now() - HOUR)
    assert questions.prune() == 0
    session_calls.finish(made.taking, made.stream, _batch(3))
    assert questions.prune() == 1
