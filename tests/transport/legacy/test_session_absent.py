"""POSTs of sessions to a process that lacks the code of what they call, and stays: their responses do, too."""

import pytest

from mcphost.calls import session_calls
from mcphost.calls.models import StreamedCall
from mcphost.calls.session_calls import NO_OWNER
from mcphost.feed.loop import ChangeNews
from mcphost.kinds.declarations import ABSENT
from mcphost.serving.background import background
from mcphost.serving.database import in_database
from mcphost.serving.legacy.takeover import takeovers
from tests.cast import Cast
from tests.legacy import calling
from tests.rounds.conftest import module
from tests.serving.legacy.callers import true
from tests.serving.legacy.processes import Processes, processes
from tests.transport.legacy.test_session_questions import (
    RED,
    _nothing_is_left,
    accepted,
    begun,
    text,
    with_forms,
)
from tests.wire import SESSION_BASED

__all__ = ["_nothing_is_left", "processes"]

pytestmark = pytest.mark.django_db(transaction=True)


async def _taken_over(processes: Processes, count: int = 1) -> None:
    """The other process takes over the calls that this one has released."""
    released = StreamedCall.objects.filter(owner=NO_OWNER)
    await true(lambda: released.count() == count)
    await in_database(processes.becomes_the_other)
    for row in await in_database(lambda: list(released)):
        takeovers.on_change(ChangeNews(1, row.tenant, session_calls.RELEASED, row.id.hex))


@with_forms
async def test_a_response_shows_the_call_that_another_process_runs(
    asking: Cast, processes: Processes, revision: str
) -> None:
    session = await begun(asking, revision)
    await in_database(processes.only_the_other_has, "asking.paint")
    async with session.begun(calling("paint", {"what": "a wall"})) as stream:
        await _taken_over(processes)
        question = await stream.message()
        await accepted(session, question, RED)
        assert await text(stream) == "a wall is red"
        assert (await stream.done()).status == 200


async def test_a_batch_shows_the_calls_that_another_process_runs(
    asking: Cast, processes: Processes
) -> None:
    session = await begun(asking, SESSION_BASED[0])
    await in_database(processes.only_the_other_has, "asking.steps_slowly", "asking.survey")
    module("asking").release.set()
    batch = [calling("steps_slowly", id=1), calling("survey", id=2), calling("steps_slowly", id=3)]
    async with session.begun(batch) as stream:
        await _taken_over(processes, 2)
        messages = {(one := await stream.message())["id"]: one for _ in range(3)}
        assert (await stream.done()).status == 200
    assert messages[2]["error"]["message"] == ABSENT
    texts = [messages[id]["result"]["content"][0]["text"] for id in (1, 3)]
    assert texts == ["done", "done"]


async def test_a_response_is_no_longer_replayed_once_its_client_has_left(
    asking: Cast, processes: Processes
) -> None:
    session = await begun(asking, SESSION_BASED[-1])
    await in_database(processes.only_the_other_has, "asking.paint")
    async with session.begun(calling("paint", {"what": "a wall"})) as stream:
        await stream.upcoming()
        await true(lambda: StreamedCall.objects.filter(owner=NO_OWNER).exists())
        await true(lambda: background)
    await stream.done()
    await true(lambda: not background)
