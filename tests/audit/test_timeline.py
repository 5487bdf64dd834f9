"""The timeline of a call, read from its entries."""

from dataclasses import replace
from datetime import timedelta

import pytest

from mcphost.audit.entries import view
from mcphost.audit.timeline import Timeline, timeline
from tests.audit.recorded_calls import HALF_HOUR, MINUTE, Story, forked, row


def read(story: Story, at: timedelta = timedelta()) -> Timeline:
    """The timeline some time after the last entry."""
    return timeline([view(row(each)) for each in story.made], story.at + at)


def played(script: str) -> Timeline:
    return read(Story().play(script))


def outcomes(found: Timeline) -> str:
    """Round, key and outcome of each question."""
    return ", ".join(
        f"{round.number} {each.entry.facts['key']} {each.outcome}"
        for round in found.rounds
        for each in round.questions
    )


STATES = [
    ("end deferred", "deferred", ""),
    ("start; ask a; back; answer a; start; end", "complete", "1 a accept"),
    ("ask a; back; answer a decline; end", "complete", "1 a decline"),
    ("ask a; back; answer a cancel; end", "complete", "1 a cancel"),
    ("ask a; back; answer a received; end", "complete", "1 a received"),
    ("ask a b", "open", "1 a open, 1 b open"),
    ("ask a b; back; answer a", "open", "1 a accept, 1 b open"),
    ("ask a b; back; answer b; ask a", "open", "1 a repeated, 1 b accept, 2 a open"),
    ("ask a b; back; answer b; end", "complete", "1 a never, 1 b accept"),
    ("ask a; end cancelled", "cancelled", "1 a never"),
    ("ask a; back; answer a; end cancelled; again; ask b", "open", "1 a accept, 2 b open"),
    # It is not known what the answer, or the round that began, has set off.
    ("ask a; back; answer a", "unknown", "1 a accept"),
    ("ask a; back; answer a; start", "unknown", "1 a accept"),
    ("question a; end input_required", "unknown", "1 a never"),
    ("refuse late", "unknown", ""),
    ("become_task; ask a", "open", "2 a open"),
    ("become_task; ask a; cancel_task", "cancelled", "2 a never"),
    ("become_task; cancel_task", "cancelled", ""),
    ("become_task; cancel_task; end", "complete", ""),
    ("ask a; cancel", "cancelled", "1 a stopped"),
    # As in a session, where the call is told at once.
    (
        "ask a b; back; answer b; ask c; cancel; back; end cancelled",
        "cancelled",
        "1 a never, 1 b accept, 2 c stopped",
    ),
]


@pytest.mark.parametrize(("script", "state", "ends"), STATES)
def test_a_call_has_a_state_and_each_of_its_input_requests_an_outcome(
    script: str, state: str, ends: str
):
    story = Story().play(script)
    found, late = read(story), read(story, HALF_HOUR)
    assert (found.state, outcomes(found)) == (state, ends)
    if state == "open":
        assert read(story, found.expires_at - story.at).state == "expired", "from that moment on"
    elif state != "unknown":
        assert found.expires_at is None
    assert (late.state, outcomes(late)) == (
        state.replace("open", "expired"),
        ends.replace("open", "expired"),
    )


@pytest.mark.parametrize(
    ("script", "ended"),
    [
        ("start", False),
        ("ask a", False),
        ("ask a; back; answer a; start", False),
        ("ask a; end cancelled", False),
        ("become_task", False),
        ("ask a; cancel", True),
        ("become_task; cancel_task", True),
        ("start; end", True),
        ("start; end tool_error", True),
        ("ask a; back; answer a; start; end crashed", True),
        # Its client sends a state again, to a tool that may run twice, or its task is retried.
        ("ask a; back; answer a decline; end; again; answer a", False),
        ("ask a; back; answer a; end tool_error; again; answer a", False),
        ("ask a; back; answer a; start; end crashed; again; answer a; start", False),
        ("ask a; back; answer a decline; end; again; answer a; end", True),
        # A process died, and another one took the call over.
        ("ask a; back; answer a; start; again; answer a; start; end", True),
    ],
)
def test_a_call_has_ended_when_no_request_of_its_client_can_continue_it(
    script: str, ended: bool
) -> None:
    assert read(Story().play(script)).has_ended is ended


def test_a_call_has_ended_when_its_time_to_answer_is_over() -> None:
    assert read(Story().play("ask a"), HALF_HOUR).has_ended


def test_a_call_with_a_result_is_complete_even_if_an_input_request_was_repeated() -> None:
    found = read(forked())
    assert (found.state, found.expires_at) == ("complete", None)
    assert outcomes(found) == "1 q decline, 2 q repeated, 3 q never"


def test_a_cancelled_call_has_the_entry_of_its_cancellation_and_no_further_round() -> None:
    story = Story().play("ask a")
    act = story.cancel("the release is off")
    found = read(story)
    assert [(each.id, each.reason) for each in found.acts] == [(act.id, "the release is off")]
    assert [each.number for each in found.rounds] == [1]
    story = Story().play("become_task; ask a")
    act = story.cancel_task()
    found = read(story)
    assert [each.id for each in found.acts] == [act.id]
    assert [each.number for each in found.rounds] == [1, 2]


def test_an_input_request_of_a_task_that_an_operator_cancelled_is_stopped() -> None:
    story = Story().play("become_task; ask a; cancel_task")
    *before, act = [view(row(each)) for each in story.made]
    assert (
        outcomes(timeline([*before, replace(act, http_request_id=None)], story.at)) == "2 a stopped"
    )


def test_rounds_input_requests_and_input_responses_are_in_order() -> None:
    story = Story().play("start")
    asked = story.ask("a")
    answered = story.back(2 * MINUTE).answer("a")
    begun = story.start()
    found = read(story.play("ask b; back; answer b; start; end"))
    assert (found.state, outcomes(found)) == ("complete", "1 a accept, 2 b accept")
    first, second, third = found.rounds
    (question,) = first.questions
    assert question.expires_at == asked.at + HALF_HOUR
    (answer,) = question.answers
    assert (answer.entry.id, answer.seconds, answer.why) == (answered.id, 61.5, "")
    assert answer.ran is second.attempts[0]
    assert answer.ran.started is not None
    assert (answer.ran.started.id, answer.ran.outcome) == (begun.id, "input_required")
    assert second.answers == (answer,)
    assert [each.sealed_by for each in first.attempts] == ["k1"]
    assert (third.questions, third.strange, third.refusals) == ((), (), ())
    assert len(found.questions) == 2


def test_an_invalid_input_response_has_its_reason_and_is_requested_again() -> None:
    story = Story().play("ask a; back; answer a")
    story.ask("a", invalid={"a": "'x' is no number"})
    found = read(story.play("back; answer a decline; end"))
    assert outcomes(found) == "1 a invalid, 2 a decline"
    assert found.rounds[0].questions[0].answers[0].why == "'x' is no number"


def test_an_input_response_to_a_different_question_under_the_same_key_does_not_count() -> None:
    story = Story().play("ask a; back")
    story.answer("a", question="of another text")
    found = read(story.play("end"))
    assert outcomes(found) == "1 a never"
    assert [each.entry.facts["question"] for each in found.rounds[1].strange] == ["of another text"]


def test_an_unrequested_input_response_is_listed_with_the_round_that_received_it() -> None:
    story = Story()
    story.answer("a", unasked=True)
    story.end()
    found = read(story)
    (answer,) = found.rounds[0].strange
    assert (answer.outcome, answer.entry.outcome) == ("unasked", "accept")


def test_refusals_are_listed_with_the_round_in_which_they_happened() -> None:
    found = played("ask a; back; refuse arguments; answer a; end; refuse answered")
    reasons = [[each.reason for each in round.refusals] for round in found.rounds]
    assert reasons == [["arguments"], ["answered"]]
    assert [len(each.refusals) for each in played("refuse late").rounds] == [1]
