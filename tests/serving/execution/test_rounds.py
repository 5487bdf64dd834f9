"""Running a round: what is recorded, and what happens when that fails."""

import asyncio
from collections.abc import Iterator

import pytest

from mcphost.audit.models import Entry
from mcphost.audit.ports import payload_cipher, set_payload_cipher
from mcphost.audit.writer.writer import writer
from mcphost.observability import counters
from mcphost.protocol.errors import INTERNAL_ERROR, UNAVAILABLE, ProtocolError
from mcphost.runtime.outcomes import (
    Complete,
    Outcome,
)
from mcphost.serving.context import Turn
from mcphost.serving.database import in_database
from mcphost.serving.execution import commits, rounds
from mcphost.serving.replies import Answered, Reply
from tests.audit.ciphers import XorCipher
from tests.kinds.rounds import ports
from tests.serving.defined_rounds import turn

pytestmark = pytest.mark.django_db(transaction=True)

HELLO = Complete({"content": [{"type": "text", "text": "hello"}]})


@pytest.fixture(autouse=True)
def _writing(transactional_db: None) -> Iterator[None]:
    """A running writer, with a cipher that needs no keys."""
    before = payload_cipher()
    set_payload_cipher(XorCipher())
    writer.start()
    yield
    set_payload_cipher(before)
    assert writer.stop(20)


async def _hello() -> Outcome:
    return HELLO


def _observed(outcome: str) -> int:
    """How many rounds of a tool have ended with this outcome."""
    series = counters.round_seconds.series.get(("python", "tool", outcome))
    return sum(series.buckets) if series else 0


async def _recorded() -> list[tuple[str, str, str]]:
    of_calls = Entry.objects.filter(call__isnull=False).order_by("id")
    rows = of_calls.values_list("action", "outcome", "reason")
    return await in_database(lambda: list(rows))


def _said(reply: Reply) -> str:
    """The text of an error result."""
    assert isinstance(reply, Answered)
    assert reply.result["isError"] is True
    text: str = reply.result["content"][0]["text"]
    return text


async def _refused(what: Turn) -> ProtocolError:
    with pytest.raises(ProtocolError) as refused:
        await rounds.run(what, ports())
    return refused.value


async def test_a_read_only_tool_writes_one_record_and_any_other_two() -> None:
    before, complete = counters.rounds.value, _observed("complete")
    assert await rounds.run(turn(_hello), ports()) == Answered(HELLO.result)
    assert await _recorded() == [("round.finished", "complete", "")]
    assert await rounds.run(turn(_hello, read_only=False), ports()) == Answered(HELLO.result)
    actions = [action for action, _, _ in await _recorded()]
    assert actions == ["round.finished", "round.started", "round.finished"]
    assert counters.rounds.value == before + 2
    assert _observed("complete") == complete + 2


async def test_a_program_that_raises_has_crashed_and_reveals_no_details(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def raises() -> Outcome:
        raise LookupError("of the insides")

    before = _observed("crashed")
    said = _said(await rounds.run(turn(raises), ports()))
    assert "insides" not in said
    assert await _recorded() == [("round.finished", "crashed", said)]
    assert "a program raised instead of failing" in caplog.messages
    assert _observed("crashed") == before + 1


async def test_no_round_runs_while_nothing_can_be_recorded() -> None:
    ran = []

    async def runs() -> Outcome:
        ran.append(1)
        return HELLO

    await asyncio.to_thread(writer.stop, 20)
    error = await _refused(turn(runs))
    assert (error.code, ran) == (UNAVAILABLE, [])
    assert error.data == {"retryAfter": 2}


async def test_a_result_whose_record_was_lost_is_not_returned() -> None:
    async def outlives_the_writer() -> Outcome:
        await asyncio.to_thread(writer.stop, 20)
        return HELLO

    error = await _refused(turn(outlives_the_writer))
    assert error.code == UNAVAILABLE
    assert await _recorded() == []


async def test_an_unrecorded_change_is_an_error_that_does_not_invite_a_retry() -> None:
    async def outlives_the_writer() -> Outcome:
        await asyncio.to_thread(writer.stop, 20)
        return HELLO

    error = await _refused(turn(outlives_the_writer, read_only=False))
    assert (error.code, error.data) == (INTERNAL_ERROR, None)
    assert error.message == commits.UNRECORDED_END
    assert await _recorded() == [("round.started", "", "")]


async def test_a_record_that_can_never_be_written_is_an_internal_error() -> None:
    before = counters.records_refused.value
    set_payload_cipher(None)  # and a payload is never written in clear
    error = await _refused(turn(_hello))
    assert error.code == INTERNAL_ERROR
    assert error.data is None
    assert counters.records_refused.value == before + 1


class Waiting:
    """A program that waits until it is cancelled."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def __call__(self) -> Outcome:
        self.begun.set()
        await asyncio.Event().wait()
        return HELLO


async def _cancelled(*, writing: bool = True) -> None:
    waiting = Waiting()
    running = asyncio.create_task(rounds.run(turn(waiting), ports()))
    await waiting.begun.wait()
    if not writing:
        await asyncio.to_thread(writer.stop, 20)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.to_thread(writer.stop, 20)
    await asyncio.sleep(0)  # the writer's callbacks run in the loop's next pass


async def test_a_cancelled_round_is_recorded_after_the_disconnect() -> None:
    await _cancelled()
    assert await _recorded() == [("round.finished", "cancelled", "the client disconnected")]


async def test_a_disconnect_before_the_tool_ran_is_recorded_with_a_known_outcome() -> None:
    ran = []

    async def runs() -> Outcome:
        ran.append(1)
        return HELLO

    running = asyncio.create_task(rounds.run(turn(runs, read_only=False), ports()))
    await asyncio.sleep(0)  # it waits for the commit of its first entry now
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.to_thread(writer.stop, 20)
    assert ran == []
    assert await _recorded() == [
        ("round.started", "", ""),
        ("round.finished", "cancelled", "the client disconnected"),
    ]
