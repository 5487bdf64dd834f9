"""The transitions of the rows of claims, session calls and questions, each pair of states tried on the database;
those of a session's call in its owner and of its stream, as the documentation shows them."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import pytest

from mcphost.calls import claims, questions
from mcphost.calls.models import Claim, OpenQuestion, StreamedCall
from mcphost.calls.states import (
    CALL,
    CLAIM,
    OWNED_CALL,
    QUESTION,
    STREAM,
    CallState,
    ClaimState,
    OwnedCallState,
    QuestionState,
    StreamState,
    before,
    diagram,
)
from tests.calls.claim_rows import TENANT, claimed, lease, row, submit, wanted
from tests.calls.conftest import Start
from tests.calls.streaming import begun, write

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).resolve().parent.parent.parent
Table = Mapping[tuple[StrEnum, StrEnum], StrEnum]


def test_every_state_has_a_row() -> None:
    assert set(CLAIM) == set(ClaimState)
    assert set(CALL) == set(CallState)
    assert set(QUESTION) == set(QuestionState)
    assert before(CLAIM, ClaimState.FINISHED) == {ClaimState.RUNNING, ClaimState.RELEASED}


def test_nothing_leads_out_of_an_end_but_a_repetition_of_it() -> None:
    assert CLAIM[ClaimState.FINISHED] == frozenset()
    assert CALL[CallState.FINISHED] == {CallState.FINISHED}
    assert CALL[CallState.CANCELLED] == {CallState.CANCELLED, CallState.FINISHED}
    assert QUESTION[QuestionState.ANSWERED] == {QuestionState.ANSWERED}
    assert QUESTION[QuestionState.CANCELLED] == QUESTION[QuestionState.EXPIRED] == frozenset()


@pytest.mark.parametrize("now", ClaimState)
@pytest.mark.parametrize("then", ClaimState)
def test_a_claim_makes_only_the_transitions_of_the_table(
    start: Start, now: ClaimState, then: ClaimState
):
    writer, of = start(), wanted()
    mine = claimed(writer, of)
    Claim.objects.update(state=now)
    change = {
        ClaimState.RUNNING: claims.take_over(lease(of, 2), of),
        ClaimState.RELEASED: claims.release(mine),
        ClaimState.FINISHED: claims.conclude(mine, lambda: "sealed"),
    }[then]
    allowed = then in CLAIM[now]
    assert submit(writer, (change, [])) == [allowed]
    assert row(of).state == (then if allowed else now)


@pytest.mark.parametrize("now", CallState)
@pytest.mark.parametrize("then", CallState)
def test_a_session_call_makes_only_the_transitions_of_the_table(
    start: Start, now: CallState, then: CallState
) -> None:
    made = begun(writer := start())
    number = 2 if then is CallState.RUNNING and now is CallState.WAITING else 1
    StreamedCall.objects.update(state=now)
    change = {
        CallState.RUNNING: made.start(number),
        CallState.WAITING: made.ask(2),
        CallState.FINISHED: made.finish(2),
        CallState.CANCELLED: made.finish(2, state=CallState.CANCELLED),
    }[then]
    allowed = then in CALL[now]
    assert write(writer, change) == [allowed]
    assert made.row.state == (then if allowed else now)


@pytest.mark.parametrize("now", QuestionState)
@pytest.mark.parametrize("then", list(QuestionState)[1:])
def test_a_question_makes_only_the_transitions_of_the_table(
    start: Start, now: QuestionState, then: QuestionState
) -> None:
    made = begun(start(), waits=True)
    question, session = made.waiting.round_questions.questions[0].id, made.stream.session
    OpenQuestion.objects.update(state=now, answer="sealed answer" if now == "answered" else "")
    if then is QuestionState.ANSWERED:
        taken = questions.answer(question, session, "sealed answer") is not None
        assert taken == (then in QUESTION[now])
    elif then is QuestionState.CANCELLED:
        questions.cancel(made.lease.id)
    else:
        questions.expire_digests(TENANT, ["digest"])
    (state,) = set(OpenQuestion.objects.filter(id=question).values_list("state", flat=True))
    assert state == (then if then in QUESTION[now] else now)


@pytest.mark.parametrize(
    ("table", "ends"),
    [
        (OWNED_CALL, {OwnedCallState.RELEASED, OwnedCallState.ENDING}),
        (STREAM, {StreamState.ENDED, StreamState.MOVED, StreamState.DROPPED}),
    ],
)
def test_every_state_is_reachable_and_only_final_states_have_no_transition(
    table: Table, ends: set[StrEnum]
) -> None:
    (first, *_), _ = zip(*table, strict=True)
    states = set(type(first))
    reached = {first}
    while new := {then for (state, _), then in table.items() if state in reached} - reached:
        reached |= new
    assert reached == states
    assert states - {state for state, _ in table} == ends


@pytest.mark.parametrize("table", [OWNED_CALL, STREAM])
def test_the_diagram_is_in_the_documentation(table: Table) -> None:
    lines = "\n".join(diagram(table))
    assert f"```\n{lines}\n```" in (ROOT / "docs" / "design" / "sessions.md").read_text()
