"""The timeline of a call, read from its entries."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from mcphost.audit.entries import EntryView, view
from mcphost.audit.timeline import Timeline, moment, timeline
from mcphost.runtime.call import Delivery
from tests.audit.asking import HALF_HOUR, MINUTE, NOW, Story, forked, row


def read(story: Story, at: timedelta = timedelta()) -> Timeline:
    """The timeline some time after the last entry."""
    return timeline([view(row(each)) for each in story.made], story.at + at)


def fates(found: Timeline) -> list[tuple[int, str, str]]:
    return [
        (round.number, each.entry.facts["key"], each.fate)
        for round in found.rounds
        for each in round.questions
    ]


def as_task() -> Story:
    """A call that became a task in its first round, and asks in the second."""
    story = Story()
    story.start()
    story.end("deferred")
    story.call = story.call._replace(delivery=Delivery.TASK)
    story.back().start()
    return story


def test_a_call_that_became_a_task_is_known_to_go_on() -> None:
    story = Story()
    story.end("deferred")
    assert read(story).state == "deferred"


def test_a_question_of_a_task_can_be_answered() -> None:
    story = as_task()
    story.ask("colour")
    found = read(story)
    assert found.state == "open"
    assert fates(found) == [(2, "colour", "open")]


def test_nothing_of_a_cancelled_task_waits() -> None:
    story = as_task()
    story.ask("colour")
    act = story.cancel_task()
    found = read(story)
    assert (found.state, found.expires_at) == ("cancelled", None)
    assert fates(found) == [(2, "colour", "never")]
    assert [each.id for each in found.acts] == [act.id]
    assert [each.number for each in found.rounds] == [1, 2]


def test_a_call_that_a_user_cancelled_waits_no_more_and_says_why() -> None:
    story = Story()
    story.ask("colour")
    act = story.cancel("the release is off")
    found = read(story)
    assert (found.state, found.expires_at) == ("cancelled", None)
    assert fates(found) == [(1, "colour", "stopped")]
    assert [(each.id, each.reason) for each in found.acts] == [(act.id, "the release is off")]
    assert [each.number for each in found.rounds] == [1]


def test_only_what_waited_when_a_user_cancelled_the_call_was_stopped() -> None:
    story = Story()
    story.ask("colour", "size")
    story.back().answer("size")
    story.ask("shape")
    story.cancel()
    story.back().end("cancelled")  # as in a session, where the call is told at once
    assert fates(read(story)) == [
        (1, "colour", "never"),
        (1, "size", "accept"),
        (2, "shape", "stopped"),
    ]


def test_a_question_of_a_task_that_an_operator_cancelled_was_stopped() -> None:
    story = as_task()
    story.ask("colour")
    story.cancel_task()
    *before, act = [view(row(each)) for each in story.made]
    found = timeline([*before, replace(act, leg=None)], story.at)
    assert fates(found) == [(2, "colour", "stopped")]


def test_a_task_that_is_cancelled_while_it_runs_is_not_of_unknown_outcome() -> None:
    story = as_task()
    story.cancel_task()
    assert read(story).state == "cancelled"


def test_a_result_counts_although_the_task_was_cancelled_just_before() -> None:
    story = as_task()
    story.cancel_task()
    story.end()
    assert read(story).state == "complete"


def test_rounds_questions_and_answers_come_in_order() -> None:
    story = Story()
    story.start()
    asked = story.ask("resolution")
    story.back(2 * MINUTE)
    answered = story.answer("resolution")
    begun = story.start()
    story.ask("duplicate_of")
    story.back().answer("duplicate_of")
    story.start()
    story.end()
    found = read(story)
    assert found.state == "complete"
    assert fates(found) == [(1, "resolution", "accept"), (2, "duplicate_of", "accept")]
    first, second, third = found.rounds
    (question,) = first.questions
    assert question.expires_at == asked.at + HALF_HOUR
    (answer,) = question.answers
    assert (answer.entry.id, answer.seconds, answer.why) == (answered.id, 61.5, "")
    assert answer.ran is second.attempts[0]
    assert answer.ran.started is not None
    assert (answer.ran.started.id, answer.ran.outcome) == (begun.id, "input_required")
    assert second.taken == (answer,)
    assert [each.sealed_by for each in first.attempts] == ["k1"]
    assert (third.questions, third.strange, third.refusals) == ((), (), ())
    assert len(found.questions) == 2


@pytest.mark.parametrize("outcome", ["decline", "cancel", "received"])
def test_each_way_to_answer_is_told(outcome: str) -> None:
    story = Story()
    story.ask("q")
    story.back().answer("q", outcome)
    story.end()
    assert fates(read(story)) == [(1, "q", outcome)]


def test_a_question_waits_until_it_expires() -> None:
    story = Story()
    story.ask("a", "b")
    found = read(story)
    assert found.state == "open"
    assert fates(found) == [(1, "a", "open"), (1, "b", "open")]
    assert found.expires_at is not None
    late = read(story, HALF_HOUR)
    assert late.state == "expired"
    assert fates(late) == [(1, "a", "expired"), (1, "b", "expired")]


def test_of_two_questions_one_may_be_answered_and_the_other_wait() -> None:
    story = Story()
    story.ask("a", "b")
    story.back().answer("a")
    found = read(story)
    assert found.state == "open"
    assert fates(found) == [(1, "a", "accept"), (1, "b", "open")]
    assert read(story, HALF_HOUR).state == "expired"


def test_an_answer_that_set_nothing_off_leaves_the_outcome_unknown() -> None:
    story = Story()
    story.ask("a")
    story.back().answer("a")
    found = read(story)
    assert found.state == "unknown"
    (answer,) = found.rounds[1].taken
    assert answer.ran is None


def test_a_round_that_was_started_and_has_no_end_is_unknown() -> None:
    story = Story()
    story.ask("a")
    story.back().answer("a")
    story.start()
    found = read(story)
    assert found.state == "unknown"
    assert [each.outcome for each in found.rounds[1].attempts] == ["unknown"]
    assert found.rounds[1].attempts[0].entry.action == "round.started"


def test_a_round_that_was_taken_over_shows_both_runs() -> None:
    story = Story()
    story.ask("a")
    story.back().answer("a")
    story.start()
    story.again().answer("a")
    story.start()
    story.end("tool_error", "it broke")
    found = read(story)
    assert found.state == "tool_error"
    assert [each.outcome for each in found.rounds[1].attempts] == ["unknown", "tool_error"]
    assert tuple(each.ran for each in found.rounds[1].taken) == found.rounds[1].attempts
    assert len(found.questions[0].answers) == 2


def test_an_answer_that_did_not_fit_says_why_and_is_asked_again() -> None:
    story = Story()
    story.ask("a")
    story.back().answer("a")
    story.ask("a", invalid={"a": "'x' is no number"})
    story.back().answer("a", "decline")
    story.end()
    found = read(story)
    assert fates(found) == [(1, "a", "invalid"), (2, "a", "decline")]
    assert found.rounds[0].questions[0].answers[0].why == "'x' is no number"


def test_a_client_that_came_back_without_an_answer_was_asked_again() -> None:
    story = Story()
    story.ask("a", "b")
    story.back().answer("b")
    story.ask("a")
    found = read(story)
    assert fates(found) == [(1, "a", "repeated"), (1, "b", "accept"), (2, "a", "open")]
    assert found.rounds[0].questions[0].again == 2


def test_a_question_that_the_call_went_on_without_was_never_answered() -> None:
    story = Story()
    story.ask("a", "b")
    story.back().answer("b")
    story.end()
    assert fates(read(story)) == [(1, "a", "never"), (1, "b", "accept")]
    given_up = Story()
    given_up.ask("a")
    given_up.end("cancelled", "the client disconnected")
    assert read(given_up).state == "cancelled"
    assert fates(read(given_up)) == [(1, "a", "never")]


def test_an_answer_to_another_question_under_the_same_key_does_not_count() -> None:
    story = Story()
    story.ask("a")
    story.back().answer("a", question="of another text")
    story.end()
    found = read(story)
    assert fates(found) == [(1, "a", "never")]
    assert [each.entry.facts["question"] for each in found.rounds[1].strange] == ["of another text"]


def test_an_unasked_answer_stands_with_the_round_that_took_it() -> None:
    story = Story()
    story.answer("a", unasked=True)
    story.end()
    found = read(story)
    (answer,) = found.rounds[0].strange
    assert (answer.fate, answer.entry.outcome) == ("unasked", "accept")


def test_a_state_that_was_sent_twice_keeps_both_answers_and_one_question() -> None:
    story = Story()
    story.ask("a")
    story.back().answer("a")
    story.ask("b")
    story.again().answer("a", "decline")
    story.ask("b")
    found = read(story)
    first, second = found.rounds[0].questions[0].answers
    assert [first.fate, second.fate] == ["accept", "decline"]
    assert (first.ran, second.ran) == found.rounds[1].attempts
    assert fates(found) == [(1, "a", "accept"), (2, "b", "open")]
    assert len(found.rounds[1].attempts) == 2


def test_refusals_stand_where_they_happened() -> None:
    story = Story()
    story.ask("a")
    story.back().refuse("other arguments")
    story.answer("a")
    story.end()
    story.refuse("the round has its answers")
    found = read(story)
    assert [[each.reason for each in round.refusals] for round in found.rounds] == [
        ["other arguments"],
        ["the round has its answers"],
    ]
    alone = Story()
    alone.refuse("it expired")
    found = read(alone)
    assert found.state == "unknown"
    assert [len(each.refusals) for each in found.rounds] == [1]


def test_answers_that_came_again_stand_with_the_round_before_and_make_none() -> None:
    story = Story()
    story.ask("q")
    story.back().answer("q")
    story.end()
    story.again().repeat()
    last = story.back().repeat()
    found = read(story)
    assert [len(each.repeated) for each in found.rounds] == [0, 2]
    assert found.rounds[1].repeated[-1].id == last.id
    assert [len(each.attempts) for each in found.rounds] == [1, 1]
    assert (found.state, found.rounds[1].refusals) == ("complete", ())


def test_a_call_that_has_its_result_waits_for_nothing_whatever_was_asked_again() -> None:
    story = forked()
    found = read(story)
    assert (found.state, found.expires_at) == ("complete", None)
    assert fates(found) == [(1, "q", "decline"), (2, "q", "repeated"), (3, "q", "never")]


def test_how_long_an_answer_took_follows_from_the_entries_where_nobody_said() -> None:
    story = Story()
    question = story.question("a")
    story.end("input_required")
    story.back(5 * MINUTE)
    answer = story.answer("a", seconds=None)
    strange = story.answer("b", seconds=None)
    found = read(story)
    given = {each.entry.id: each.seconds for each in found.rounds[1].taken}
    assert given == {answer.id: (answer.at - question.at).total_seconds(), strange.id: None}
    assert fates(found) == [(1, "a", "accept")]


def test_a_question_whose_end_nobody_knows_does_not_wait() -> None:
    story = Story()
    story.question("a")
    story.end("input_required", asked=["a"])
    assert read(story).state == "unknown"
    assert fates(read(story)) == [(1, "a", "never")]


@pytest.mark.parametrize("text", [None, 7, "", "soon", "2026-05-04T12:00:00"])
def test_what_is_no_time_with_a_zone_is_none(text: object) -> None:
    assert moment(text) is None
    assert moment(NOW.isoformat()) == NOW


def test_a_call_with_twice_the_entries_is_read_with_twice_the_work() -> None:
    """A client can add any number of rounds, and of runs of one round, by sending states again."""
    work = [_work_of(_often_resent(count)) for count in (200, 400)]
    assert work[1] < 2.2 * work[0]


def _often_resent(count: int) -> Sequence[EntryView]:
    story = Story()
    story.ask("a", "b")
    for number in range(count):
        story.back() if number % 2 else story.again()
        story.answer("a")
        story.refuse("too late")
        story.ask("a", "b")
    return [view(row(each)) for each in story.made]


def _work_of(entries: Sequence[EntryView]) -> int:
    """How many calls of functions a timeline needs."""
    calls = 0

    def count(frame: Any, event: str, arg: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        timeline(entries, NOW)
    finally:
        sys.setprofile(before)
    return calls
