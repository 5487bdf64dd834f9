"""Answers that the owner of a call stores, at the same time as others change the call."""

import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any
from uuid import uuid4

import pytest
from django.db import DEFAULT_DB_ALIAS, connection, connections, transaction
from django.utils import timezone

from mcphost.audit.writer.conditions import BoundCondition
from mcphost.audit.writer.sinks import PostgresSink
from mcphost.calls import questions, session_calls
from mcphost.calls.models import OpenQuestion, Session, StreamedCall
from mcphost.calls.session_calls import Takeover
from mcphost.calls.states import CallState, QuestionState
from tests.audit.databases import await_a_lock, record, stored
from tests.audit.writer.test_writer import in_background
from tests.calls.claim_rows import TENANT, submit
from tests.calls.conftest import Start
from tests.calls.streaming import HOUR, MadeCall, begun, everything, write

pytestmark = pytest.mark.django_db(transaction=True)

ANSWERED = QuestionState.ANSWERED
starting = pytest.mark.parametrize("state", [CallState.WAITING, CallState.RUNNING])


def _question(made: MadeCall, **columns: Any) -> None:
    first = made.waiting.round_questions.questions[0].id
    OpenQuestion.objects.filter(id=first).update(**columns)


def _session(made: MadeCall, **columns: Any) -> None:
    Session.objects.filter(id=made.stream.session).update(**columns)


def _of_another_session(made: MadeCall) -> None:
    made.stream = made.stream._replace(session=MadeCall().stream.session)


UNANSWERABLE: dict[str, Callable[[MadeCall], object]] = {
    "expired by the clock": lambda made: _question(made, expires_at=timezone.now() - HOUR),
    "expired": lambda made: _question(made, state=QuestionState.EXPIRED),
    "withdrawn": lambda made: _question(made, state=QuestionState.CANCELLED),
    "answered": lambda made: _question(made, state=ANSWERED, answer="another"),
    "of another call": lambda made: _question(made, call=uuid4()),
    "forgotten": lambda made: OpenQuestion.objects.all().delete(),
    "of another session": _of_another_session,
    "in an ended session": lambda made: _session(made, ended_at=timezone.now()),
    "in no session": lambda made: Session.objects.all().delete(),
    "of a cancelled call": lambda made: session_calls.cancel(
        made.stream.session, TENANT, made.stored.request_name
    ),
    "of a call that was only marked as cancelled": lambda made: StreamedCall.objects.update(
        state=CallState.CANCELLED
    ),
    "of an earlier round": lambda made: StreamedCall.objects.update(round=2),
    "of a released call": lambda made: session_calls.release(made.lease, notify=False),
    "of no call": lambda made: StreamedCall.objects.all().delete(),
}


@starting
@pytest.mark.parametrize("spoil", UNANSWERABLE.values(), ids=UNANSWERABLE)
def test_an_answer_to_a_question_that_cannot_be_answered_changes_nothing(start, spoil, state):
    made = begun(writer := start(), waits=True)
    spoil(made)
    before = everything()
    assert submit(writer, (made.answer(state=state), [record()])) == [False]
    assert everything() == before


@starting
def test_a_session_does_not_expire_while_a_question_is_open(start, state):
    made = begun(writer := start(), waits=True)
    _session(made, expires_at=timezone.now() - HOUR)
    assert write(writer, made.answer(state=state)) == [True]


@starting
def test_a_repeated_identical_sealed_answer_is_accepted_and_changes_nothing(start, state):
    made = begun(writer := start(), waits=True)
    assert write(writer, made.answer(state=state)) == [True]
    before = everything(times=False)
    _question(made, expires_at=timezone.now() - HOUR)
    assert write(writer, made.answer(state=state)) == [True]
    assert everything(times=False) == before
    assert write(writer, made.answer(text="another", state=state)) == [False]
    assert everything(times=False) == before


@pytest.mark.parametrize("elsewhere", [False, True])
def test_the_next_round_starts_when_its_last_answer_is_already_stored(
    start: Start, elsewhere: bool
):
    made = begun(writer := start(), waits=True)
    before = everything()
    for number in (1, 3):
        for state in (CallState.RUNNING, CallState.WAITING):
            assert write(writer, made.answer(state=state, number=number)) == [False]
    assert everything() == before
    if elsewhere:
        first = made.waiting.round_questions.questions[0].id
        assert questions.answer(first, made.stream.session, "sealed answer") is not None
        assert write(writer, made.answer(text="another")) == [False]
    assert write(writer, made.answer()) == [True]
    assert made.row.state == CallState.WAITING
    assert write(writer, made.answer(state=CallState.RUNNING)) == [True]
    assert (made.row.state, made.row.round) == (CallState.RUNNING, 2)


# --- at the same time ---


@pytest.mark.postgresql
@starting
def test_an_answer_blocked_by_a_takeover_is_refused(start: Start, state: CallState) -> None:
    made = begun(writer := start(), waits=True)
    made.dies()
    with transaction.atomic():
        assert Takeover(made.lease.id, uuid4())() is not None
        answering = in_background(lambda: submit(writer, (made.answer(state=state), [record()])))
        await_a_lock("WITH call_answer0")
    assert answering() == [False]
    assert [each.state for each in made.questions] == [QuestionState.OPEN] * 2
    assert (made.row.state, made.row.round) == (CallState.WAITING, 1)
    assert stored() == set()


@pytest.mark.postgresql
@starting
def test_a_takeover_blocked_by_an_answer_reads_it(start: Start, state: CallState) -> None:
    made = begun(start(), waits=True)
    made.dies()
    bound = BoundCondition.of(made.answer(state=state), [])
    other = connections.create_connection(DEFAULT_DB_ALIAS)
    other.ensure_connection()
    with closing(other):
        server = other.connection
        server.execute("BEGIN")
        assert PostgresSink(server).write_if([], [bound]) == {made.lease.id.hex}
        lease = in_background(_and_close(Takeover(made.lease.id, uuid4())))
        await_a_lock("SELECT")
        server.execute("COMMIT")
    taken_over = lease()
    assert (taken_over.state, taken_over.owner.epoch) == (state, 2)
    assert [each.answer for each in made.questions] == ["sealed answer", ""]


def _and_close(function: Callable[[], Any]) -> Callable[[], Any]:
    """As `function`, for a thread: closes its connection."""

    def closing_it() -> Any:
        try:
            return function()
        finally:
            connection.close()

    return closing_it


@starting
def test_an_answer_concurrent_with_a_takeover_is_read_by_it_or_refused(
    start: Start, state: CallState
):
    writer = start()
    session = MadeCall().stream.session
    every = [begun(writer, waits=True, of=session) for _ in range(15)]
    for made in every:
        made.dies()
    seen: list[tuple[bool, str]] = []
    me = uuid4()
    together = threading.Barrier(2)

    def taking_over() -> None:
        for made in every:
            together.wait(20)
            taken_over = Takeover(made.lease.id, me)()
            statuses = questions.statuses(made.lease.id, 1)
            answered = any(each.state is ANSWERED for each in statuses)
            seen.append((answered, taken_over.state))

    others = in_background(_and_close(taking_over))
    results = []
    for made in every:
        together.wait(20)
        results += submit(writer, (made.answer(state=state), [record()]))
    assert others() is None
    assert [answered for answered, _ in seen] == results
    for made, result in zip(every, results, strict=True):
        assert (made.questions[0].state == ANSWERED) is result
        assert made.row.state == (state if result else CallState.WAITING)
    assert [taken for _, taken in seen] == [state if f else CallState.WAITING for f in results]
    assert len(stored()) == sum(results)


@pytest.mark.postgresql
@starting
def test_answers_and_cancellations_lock_rows_in_the_same_order(start, state):
    made = begun(writer := start(), waits=True)
    with transaction.atomic():
        StreamedCall.objects.filter(id=made.lease.id).update(state=CallState.CANCELLED)
        answering = in_background(lambda: submit(writer, (made.answer(state=state), [record()])))
        await_a_lock("WITH call_answer0")
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '200ms'")  # before a deadlock is noticed
        questions.cancel(made.lease.id)  # as `session_calls.cancel` does next
    assert answering() == [False]
    assert [each.state for each in made.questions] == [QuestionState.CANCELLED] * 2
    assert stored() == set()


@starting
def test_one_of_two_concurrent_answers_to_a_question_is_accepted(start: Start, state: CallState):
    writer = start()
    session = MadeCall().stream.session
    every = [begun(writer, waits=True, of=session) for _ in range(15)]
    together = threading.Barrier(2)

    def elsewhere() -> list[bool]:
        accepted = []
        for made in every:
            first = made.waiting.round_questions.questions[0].id
            together.wait(20)
            accepted.append(questions.answer(first, session, "from elsewhere") is not None)
        return accepted

    others = in_background(_and_close(elsewhere))
    mine = []
    for made in every:
        together.wait(20)
        mine += write(writer, made.answer(state=state))
    assert [here + there for here, there in zip(mine, others(), strict=True)] == [1] * 15
    for made, here in zip(every, mine, strict=True):
        assert made.questions[0].answer == ("sealed answer" if here else "from elsewhere")
        assert made.row.state == (state if here else CallState.WAITING)
