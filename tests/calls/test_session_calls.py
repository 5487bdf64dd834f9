"""The owner of a call on a stream: its rounds, takeovers, and what ends it."""

from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from mcphost.calls import questions, session_calls
from mcphost.calls.models import OpenQuestion
from mcphost.calls.ownership import NO_OWNER, Lease
from mcphost.calls.states import CallState, QuestionState
from mcphost.feed import nodes
from mcphost.feed.models import Change, Node
from tests.audit.databases import record, stored
from tests.calls.claim_rows import TENANT, submit
from tests.calls.conftest import Start
from tests.calls.streaming import HOUR, begun, write
from tests.vault.parallel_threads import at_once

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_round_starts_only_while_its_call_waits(start: Start) -> None:
    made = begun(writer := start())
    assert submit(writer, (made.start(2), [record()])) == [False]
    assert write(writer, made.ask(2)) == [True]
    assert submit(writer, (made.start(3), [record()])) == [False]
    begins = record()
    assert submit(writer, (made.start(2), [begins])) == [True]
    assert submit(writer, (made.start(3), [record()])) == [False]
    assert stored() == {begins.id}
    assert (made.row.state, made.row.round) == (CallState.RUNNING, 2)


def test_a_round_asks_only_while_it_runs_and_its_questions_are_stored_completely(
    start: Start,
) -> None:
    made = begun(writer := start())
    assert write(writer, made.ask(2, waiting=made.asking(number=2))) == [False]
    assert write(writer, made.ask(2, 3)) == [True]
    first = begun(writer, waits=True)  # asking may be the first that is heard of a call
    for each in (made, first):
        assert (each.row.state, each.row.journal) == (CallState.WAITING, "sealed journal")
        asked = each.waiting.round_questions
        for row, question in zip(each.questions, asked.questions, strict=True):
            assert (row.id, row.key, row.digest, row.method, row.message) == question
            assert (row.tenant, row.session, row.call) == (TENANT, asked.session, asked.call)
            assert (row.round, row.answer, row.settled_at) == (1, "", None)
            assert row.state == QuestionState.OPEN
            assert abs(row.expires_at - asked.expires_at) < HOUR / 60
    assert write(writer, made.ask(4, waiting=made.asking(number=2))) == [False]
    assert len(made.questions) == 2
    OpenQuestion.objects.filter(call=made.lease.id).update(expires_at=timezone.now() - HOUR)
    assert questions.prune() == 0, "their call is not over"
    assert write(writer, made.finish(4)) == [True]
    assert questions.prune() == 2


def test_a_call_is_taken_over_from_dead_processes_only(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, me = begun(writer := start()), uuid4()
    assert session_calls.Takeover(made.lease.id, me)() is None  # its lease is not over
    made.dies()
    monkeypatch.setattr(nodes, "can_judge", lambda: False)
    assert session_calls.orphans(me) == (), "it cannot tell who is dead"
    assert session_calls.Takeover(made.lease.id, me)() is None
    monkeypatch.undo()
    Node.objects.create(
        id=made.lease.owner, name="n", started_at=timezone.now(), seen_at=timezone.now()
    )
    assert session_calls.orphans(me) == ()
    Node.objects.all().delete()
    assert session_calls.orphans(made.lease.owner) == ()
    assert session_calls.orphans(me) == (made.lease.id,)
    assert session_calls.orphans(me, stream=made.stream.id) == (made.lease.id,)
    assert session_calls.orphans(me, stream=uuid4()) == ()
    taken_over = session_calls.Takeover(made.lease.id, me)()
    assert taken_over.owner == Lease(made.lease.id, made.stream.tenant, me, 2)
    assert (taken_over.stream, taken_over.call) == (made.stream, made.stored)
    assert (taken_over.last, taken_over.round, taken_over.state) == (1, 1, CallState.RUNNING)
    assert session_calls.Takeover(made.lease.id, uuid4())() is None
    assert write(writer, made.append(2)) == [False]
    assert write(writer, made.append(2, lease=taken_over.owner)) == [True]
    assert write(writer, made.finish(3, lease=taken_over.owner)) == [True]
    made.dies()
    assert session_calls.orphans(uuid4()) == (), "what is over is taken by nobody"


def test_a_process_recognizes_its_own_takeover_after_an_unconfirmed_commit(start):
    made, me = begun(start()), uuid4()
    made.dies()
    takeover = session_calls.Takeover(made.lease.id, me)
    taken_over = takeover()
    assert taken_over is not None
    assert takeover() == taken_over
    assert session_calls.Takeover(made.lease.id, me)() is None
    made.dies()
    assert session_calls.Takeover(made.lease.id, uuid4())() is not None
    assert takeover() is None, "another process has it since"


def test_one_of_many_concurrent_takeovers_of_a_call_wins(start: Start) -> None:
    made = begun(start())
    made.dies()

    def take() -> UUID | None:
        process = uuid4()
        return process if session_calls.Takeover(made.lease.id, process)() else None

    won = [process for process in at_once(take, 6) if process]
    assert len(won) == 1
    assert (made.row.owner, made.row.epoch) == (won[0], 2)


def test_only_waiting_calls_are_released(start: Start) -> None:
    made = begun(writer := start())
    session_calls.release(made.lease, notify=True)
    assert made.row.owner == made.lease.owner
    assert write(writer, made.ask(2)) == [True]
    session_calls.release(made.lease, notify=False)
    assert made.row.owner == NO_OWNER
    assert not Change.objects.filter(name=session_calls.RELEASED).exists()
    taken_over = session_calls.Takeover(made.lease.id, uuid4())()
    session_calls.release(taken_over.owner, notify=True)
    (news,) = Change.objects.filter(name=session_calls.RELEASED)
    assert news.object_id == made.lease.id.hex


def test_a_cancelled_call_is_cancelled_for_all_processes(start: Start) -> None:
    made = begun(writer := start())
    other = begun(writer)
    assert write(writer, made.ask(2, waiting=made.asking(count=1))) == [True]
    session, name = made.stream.session, made.stored.request_name
    session_calls.cancel(uuid4(), TENANT, name)
    assert made.row.state == CallState.WAITING
    session_calls.cancel(session, TENANT, name)
    assert (made.row.state, other.row.state) == (CallState.CANCELLED, CallState.RUNNING)
    (question,) = OpenQuestion.objects.all()
    assert question.state == QuestionState.CANCELLED
    assert questions.answer(question.id, session, "sealed") is None
    assert write(writer, made.start(2)) == [False]
    assert write(writer, made.append(3)) == [True], "the owner may not know of it yet"
    assert write(writer, made.ask(4, waiting=made.asking())) == [False]
    assert write(writer, made.finish(4, state=CallState.CANCELLED)) == [True]
    assert made.row.request == ""


def test_a_question_is_answered_once_before_its_expiry_and_by_its_own_session(start: Start) -> None:
    made = begun(writer := start())
    made.waiting = made.asking(count=3)
    assert write(writer, made.ask(2)) == [True]
    first, second, third = (each.id for each in made.waiting.round_questions.questions)
    call, session = made.lease.id, made.stream.session
    assert questions.answer(first, uuid4(), "a") is None
    taken = questions.answer(first, session, "a")
    assert taken == questions.AnsweredQuestion(TENANT, call, made.lease.owner)
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
    assert questions.find(first, session) == questions.OpenQuestionRow(
        call, "key0", QuestionState.ANSWERED
    )
    assert questions.find(first, uuid4()) is None
