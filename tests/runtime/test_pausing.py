"""Rounds of programs that are paused and continue, instead of running again from the top."""

import pytest

from mcphost.runtime.history import MISSING
from mcphost.runtime.journal import EMPTY
from mcphost.runtime.steps import MisusedError
from tests.kinds.rounds import Notes, ports
from tests.runtime.rounds import a_round, answer, question, required


async def _number(n: int) -> int:
    return n


async def _fails(n: int) -> int:
    raise ValueError(n)


async def test_a_paused_program_requests_input_without_unwinding() -> None:
    with a_round() as round:
        assert round.recording.answer(question("name")) is MISSING
        outcome = required(round)
    assert [request.key for request in outcome.requests] == ["name"]
    journal = outcome.journal.with_answer("name", answer(question("name"), "Ada"))
    with a_round(journal) as round:
        assert round.recording.answer(question("name")) == "Ada"


async def test_a_round_continues_with_the_keys_and_steps_of_the_earlier_one() -> None:
    given = EMPTY.with_answer("known", answer(question("known"), "x"))
    with a_round(given) as round:
        round.recording.answer(question("known"))
        assert await round.step("do", _number, [1], {}) == 1
        for _ in range(2):
            with pytest.raises(ValueError, match="2"):
                await round.step("do", _fails, [2], {})
        round.recording.answer(question("open"))
        position = round.recording.position()
        journal = required(round).journal
    assert position["keys"] == ["known"]
    notes = Notes()
    with a_round(journal, ports(notes)) as round:
        round.recording.continue_from(position)
        round.channel.log("info", "on", None)
        assert await round.step("do", _number, [1], {}) == 1
        assert await round.step("do", _number, [2], {}) == 2
        with pytest.raises(MisusedError, match="asked twice"):
            round.recording.answer(question("known"))
        assert round.recording.answer(question("open")) is MISSING
        recorded = required(round).journal.recorded
    # The second occurrence of the step that ended, and the first of the one that had failed.
    assert sorted(id[-1] for id in recorded) == ["1", "1", "2"]
    assert notes.logged == [("info", "on", None)]
