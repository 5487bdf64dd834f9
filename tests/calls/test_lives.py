"""The lives of calls on streams and of their questions: which state may follow which."""

from mcphost.calls.states import CALLS, QUESTIONS, CallState, QuestionState


def test_a_call_that_is_over_stays_so() -> None:
    over = {CallState.FINISHED, CallState.CANCELLED}
    for now in CallState:
        assert bool(CALLS[now]) == (now not in over)
        assert over <= CALLS[now] or now in over


def test_a_question_is_settled_once() -> None:
    assert QUESTIONS[QuestionState.OPEN] == set(QuestionState) - {QuestionState.OPEN}
    assert all(not QUESTIONS[now] for now in QuestionState if now is not QuestionState.OPEN)
