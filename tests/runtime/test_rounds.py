"""Tests of rounds: known values are returned, a missing one ends the round, a broken rule raises an
error."""

import asyncio
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from mcphost.runtime import notification_channel as channel_module
from mcphost.runtime import recording as recording_module
from mcphost.runtime.call import Call
from mcphost.runtime.history import ChangedProgramError
from mcphost.runtime.journal import EMPTY, FAILED, TIMED_OUT, UNASKED, Answer, Journal
from mcphost.runtime.notification_channel import CallEndedError
from mcphost.runtime.ports import FixedPorts, Misuse, Ports, RoundLimits
from mcphost.runtime.questions import (
    CapabilityMissingError,
    Question,
    QuestionRefusedError,
    UnansweredError,
)
from mcphost.runtime.rounds import ForeignContextError, Round, ThreadLimit
from mcphost.runtime.steps import MisusedError
from mcphost.runtime.threads import ToolThreads
from mcphost.runtime.tool_tasks import Unwound
from tests.kinds.rounds import TENANT, Notes, a_call, ports
from tests.kinds.rounds_with_client import travelled
from tests.runtime.rounds import VERSION, a_round, answer, keys, question, required, unwinds

NAME = question("name", "Who?")
URL = question("name", capability="elicitation.url")


def journal_with(*given: tuple[Question[Any], Answer], **recorded: Any) -> Journal:
    journal = Journal(recorded=recorded)
    for asked, one in given:
        journal = journal.with_answer(asked.key, one)
    return journal


ANSWERED = journal_with((NAME, answer(NAME, "Ada")))


async def test_a_response_in_the_journal_is_returned() -> None:
    with a_round(ANSWERED) as round:
        assert await round.ask(NAME) == "Ada"
        assert not round.stopped


async def test_an_input_request_is_sent_with_its_digest_and_the_journal() -> None:
    with a_round(ANSWERED) as round:
        await round.ask(NAME)
        await unwinds(round.ask(question("more")))
        outcome = required(round)
        [request] = outcome.requests
        assert (request.key, request.method) == ("more", "elicitation/create")
        assert request.params == {"message": "?"}
        assert request.digest == question("more").digest
        assert (outcome.journal.answers, outcome.invalid) == (ANSWERED.answers, {})


async def test_a_response_to_another_input_request_is_not_used_and_stays_in_the_journal() -> None:
    other = question("name", "What is your name?")
    old = journal_with((other, answer(other, "Ada", version="0")))
    with a_round(old) as round:
        await unwinds(round.ask(NAME))
        kept = required(round).journal
    assert kept.answers == old.answers
    with a_round(kept.with_answer("name", answer(NAME, "Eve"))) as round:
        assert await round.ask(NAME) == "Eve"
    with a_round(kept) as round:
        assert await round.ask(other) == "Ada"


async def test_an_input_request_that_changes_in_the_same_version_is_an_error_of_the_author() -> (
    None
):
    other = question("name", "What is your name?")
    journal = journal_with((other, answer(other, "Ada")))
    with (
        a_round(journal) as round,
        pytest.raises(ChangedProgramError, match="'name' changed between rounds"),
    ):
        await round.ask(NAME)


async def test_an_unrequested_response_is_used_where_it_was_accepted() -> None:
    given = Answer(UNASKED, "", {"text": "Ada"})
    with a_round(journal_with((NAME, given))) as round:
        assert await round.ask(NAME) == "Ada"


async def test_an_invalid_response_is_removed_from_the_journal_and_requested_again() -> None:
    other = question("name", "Another?")
    both = journal_with((NAME, answer(NAME, 5)), (other, answer(other, "kept", version="0")))
    with a_round(both) as round:
        await unwinds(round.ask(NAME))
        outcome = required(round)
        assert keys(outcome) == ["name"]
        assert outcome.invalid == {"name": "text: is required"}
        assert [one.question for one in outcome.journal.answers["name"]] == [other.digest]


@pytest.mark.parametrize(("how", "said"), [(FAILED, "no screen"), (TIMED_OUT, "")])
async def test_a_declined_or_cancelled_input_request_is_not_sent_again(how: str, said: str) -> None:
    message = {"message": said} if said else {}
    given = Answer(NAME.digest, VERSION, message, how)
    with a_round(travelled(journal_with((NAME, given)))) as round:
        with pytest.raises(UnansweredError) as why:
            await round.ask(NAME)
        assert (why.value.key, why.value.how, why.value.message) == ("name", how, said)
        assert not round.stopped


@pytest.mark.parametrize("journal", [EMPTY, ANSWERED])
async def test_using_a_key_twice_is_an_error_of_the_author(journal: Journal) -> None:
    with a_round(journal) as round:
        first = asyncio.create_task(round.ask(NAME))
        await asyncio.sleep(0)
        with pytest.raises(MisusedError, match="the question 'name' is asked twice in one round"):
            await round.ask(NAME)
        first.cancel()


async def test_an_input_request_the_client_cannot_answer_raises_and_leaves_its_key_free() -> None:
    with a_round() as round:
        with pytest.raises(CapabilityMissingError) as caught:
            await round.ask(URL)
        assert caught.value.required == {"elicitation": {"url": {}}}
        await unwinds(round.ask(NAME))


async def test_the_number_of_open_input_requests_per_round_is_limited() -> None:
    with a_round() as round:
        works = [round.ask(question(f"q{number}")) for number in range(65)]
        ended = await asyncio.gather(*works, return_exceptions=True)
        assert len(required(round).requests) == 64
        assert isinstance(ended[-1], MisusedError)
        assert all(isinstance(each, Unwound) for each in ended[:-1])


async def test_after_unwinding_no_input_is_requested_and_nothing_is_recorded() -> None:
    ran: list[int] = []
    with a_round() as round:
        await unwinds(round.ask(NAME))
        await unwinds(round.ask(question("late")))
        await unwinds(round.step("late", partial(ran.append, 1), (), {}))
        await unwinds(round.wait_for("late", 1))
        assert keys(required(round)) == ["name"]
        assert required(round).journal.recorded == {}
    assert ran == []


async def test_a_tool_that_asks_in_an_endless_loop_yields_to_other_tasks_and_can_be_cancelled(
    monkeypatch,
):
    monkeypatch.setattr(recording_module, "MAX_LATE", 3)
    tries: list[BaseException] = []

    async def for_ever(round: Round) -> None:
        while True:
            try:
                await round.ask(NAME)
            except BaseException as error:
                tries.append(error)
                if isinstance(error, asyncio.CancelledError):
                    raise

    with a_round() as round:
        task = asyncio.create_task(for_ever(round))
        for _ in range(100):
            await asyncio.sleep(0)
        assert 1 < len(tries) < 20
        task.cancel()
        await asyncio.wait([task])


async def test_no_input_is_requested_while_tasks_are_ended() -> None:
    tried: list[BaseException] = []

    async def tidies_up(round: Round) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            for use in (
                lambda: round.ask(NAME),
                lambda: round.step("x", print, (), {}),
                lambda: asyncio.to_thread(round.blocking, round.ask(NAME)),
            ):
                with pytest.raises(CallEndedError) as caught:
                    await use()
                tried.append(caught.value)

    with a_round() as round:
        asyncio.create_task(tidies_up(round))  # noqa: RUF006 - left behind on purpose
        await asyncio.sleep(0)
    await round.tasks.end()
    assert len(tried) == 3


async def test_replaying_ends_with_the_last_journal_entry_or_at_a_new_operation() -> None:
    with a_round() as round:
        assert not round.channel.silent
        round.recording.now()
        await round.step("s", lambda: 1, (), {})
        await unwinds(round.ask(NAME))
        journal = required(round).journal.with_answer("name", answer(NAME, "Ada"))
    with a_round(journal) as round:
        silent = [round.channel.silent]
        round.recording.now()
        silent.append(round.channel.silent)
        await round.step("s", lambda: 1, (), {})
        silent.append(round.channel.silent)
        await round.ask(NAME)
        assert [*silent, round.channel.silent] == [True, True, True, False]
    news: list[Callable[[Round], Any]] = [
        lambda round: round.step("other", lambda: 1, (), {}),
        lambda round: asyncio.to_thread(round.recording.uuid),
        lambda round: unwinds(round.ask(question("other"))),
    ]
    for new in news:
        with a_round(journal) as round:
            assert round.channel.silent
            await new(round)
            assert not round.channel.silent


async def test_notifications_of_earlier_rounds_are_not_repeated_and_progress_does_not_fall():
    notes = Notes()

    async def play(round: Round) -> str:
        round.channel.progress(2, 4, None)
        round.channel.log("info", "begun", None)
        name: str = await round.ask(NAME)
        round.channel.progress(1, 4, None)
        round.channel.progress(3, 4, None)
        round.channel.log("info", "done", None)
        return name

    with a_round(outside=ports(notes)) as round:
        await unwinds(play(round))
        journal = required(round).journal.with_answer("name", answer(NAME, "Ada"))
    assert journal.progress == 2
    with a_round(journal, ports(notes)) as round:
        await play(round)
    assert [said[0] for said in notes.progressed] == [2, 3]
    assert [said[1] for said in notes.logged] == ["begun", "done"]


async def test_a_thread_can_request_input_and_run_steps_synchronously() -> None:
    def in_thread(round: Round) -> list[Any]:
        async def later() -> int:
            return 2

        return [
            round.blocking(round.ask(NAME)),
            round.step_here("plain", lambda: threading.current_thread().name, (), {}),
            round.step_here("plain", lambda: "never", (), {}),
            round.step_here("later", lambda: later(), (), {}),
        ]

    with a_round(ANSWERED) as round:
        name, first, again, later = await round.in_thread(partial(in_thread, round))
        assert name == "Ada"
        assert first.startswith("tool-")
        assert again == "never"
        assert later == 2


async def test_a_step_in_a_thread_is_replayed_and_retried_like_any_other() -> None:
    def fails() -> int:
        raise LookupError

    def play(round: Round) -> Any:
        with pytest.raises(LookupError):
            round.step_here("s", fails, (), {})
        value = round.step_here("s", lambda: 1, (), {})
        round.blocking(round.ask(NAME))
        return value

    with a_round() as round:
        await unwinds(round.in_thread(partial(play, round)))
        journal = required(round).journal
    assert len(journal.recorded) == 1
    with a_round(journal) as round:
        assert await round.in_thread(partial(round.step_here, "s", fails, (), {})) == 1


async def test_blocking_on_the_event_loop_thread_is_an_error_of_the_author() -> None:
    with a_round(ANSWERED) as round, pytest.raises(MisusedError, match="use Context and await it"):
        round.blocking(round.ask(NAME))


async def test_a_thread_that_waits_when_its_call_ends_gets_an_error() -> None:
    heard: list[type[BaseException]] = []

    def asks(round: Round) -> None:
        try:
            round.blocking(round.ask(NAME))
        except BaseException as error:  # noqa: BLE001 - that is what is tried
            heard.append(type(error))

    async def slow() -> None:
        await asyncio.Event().wait()

    with a_round() as round:
        asyncio.create_task(round.step("slow", slow, (), {}))  # noqa: RUF006 - left behind
        thread = asyncio.create_task(asyncio.to_thread(asks, round))
        async with asyncio.timeout(10):
            while not round.stopped:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.001)
    others = round.tasks.unfinished - {thread}
    for task in others:
        task.cancel()
    await asyncio.wait([thread], timeout=10)
    assert heard == [CallEndedError]


async def made_round() -> Round:
    return Round(a_call(), EMPTY, ports())


def test_a_thread_gets_an_error_once_the_loop_is_closed() -> None:
    round = asyncio.run(made_round())
    with pytest.raises(CallEndedError):
        threadless(lambda: round.blocking(round.ask(NAME)))


def threadless(function: Callable[[], Any]) -> Any:
    """Run a function in a new thread, and raise its error."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            function()
        except BaseException as error:  # noqa: BLE001 - raised again
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(10)
    raise raised[0]


async def test_threads_count_against_the_limit_of_the_tool() -> None:
    threads = ToolThreads(4)
    outside = FixedPorts(threads, limits=RoundLimits())
    round = Round(a_call(), EMPTY, outside, ThreadLimit("demo.deploy", 1))
    gate, begun = threading.Event(), threading.Event()

    def waits() -> None:
        begun.set()
        assert gate.wait(10)

    task = asyncio.create_task(round.in_thread(waits))
    assert await asyncio.to_thread(begun.wait, 10)
    assert threads.in_use(str(TENANT)) == 1
    with pytest.raises(Exception, match="all 1 threads"):
        await round.in_thread(waits)
    gate.set()
    await task


class Told:
    """The misuses that were reported for one round."""

    def __init__(self) -> None:
        self.misuses: list[tuple[Misuse, Call | None]] = []

    @property
    def outside(self) -> Ports:
        return ports()._replace(misused=lambda *misuse: self.misuses.append(misuse))


async def _guard(round: Round) -> None:
    round.guard()


async def test_a_round_refuses_code_of_another_call_and_reports_to_both_calls() -> None:
    lender, borrower = Told(), Told()
    with a_round(outside=lender.outside) as round, a_round(outside=borrower.outside):
        for use in (_guard(round), asyncio.create_task(_guard(round))):
            with pytest.raises(ForeignContextError, match="another call"):
                await use
        with pytest.raises(ForeignContextError, match="another call"):
            await asyncio.to_thread(round.guard)
    await asyncio.sleep(0)
    assert borrower.misuses == [(Misuse.BORROWED, round.call)] * 3
    assert lender.misuses == [(Misuse.LENT, None)] * 3


async def test_a_round_refuses_code_that_belongs_to_no_call() -> None:
    told = Told()
    with (
        a_round(outside=told.outside) as round,
        pytest.raises(ForeignContextError, match=r"ctx\.in_thread"),
    ):
        await asyncio.to_thread(threadless, round.guard)
    with pytest.raises(ForeignContextError):
        round.guard()
    await asyncio.sleep(0)
    assert told.misuses == [(Misuse.OUTSIDE, None)] * 2
    round.channel.end()
    with pytest.raises(CallEndedError):
        round.guard()


@pytest.mark.parametrize("ended", [False, True])
async def test_a_thread_that_ignores_errors_is_slowed_down_and_the_loop_is_not(ended, monkeypatch):
    monkeypatch.setattr(channel_module, "MAX_MISUSES", 2)
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    told = Told()
    with a_round(outside=told.outside) as round, a_round():
        if ended:
            round.channel.end()

        def again() -> None:
            with pytest.raises(CallEndedError if ended else ForeignContextError):
                (round.channel.check if ended else round.guard)()

        for _ in range(2):
            await asyncio.to_thread(again)
        again()
        assert slept == []
        await asyncio.to_thread(again)
        assert slept == [channel_module.BRAKE_SECONDS]
    await asyncio.sleep(0)
    assert told.misuses == [(Misuse.OVER if ended else Misuse.LENT, None)] * 2


def test_an_input_request_that_json_cannot_represent_is_refused() -> None:
    with pytest.raises(QuestionRefusedError, match="the question 'a' is not JSON"):
        Question("a", "elicitation/create", {"number": 2**70}, "elicitation", str)
