"""Messages on a call's stream: written, even if the code that sent them is cancelled."""

import pytest

from mcphost.protocol import messages
from mcphost.runtime.notification_channel import NotificationChannel
from mcphost.runtime.tool_tasks import ToolTasks
from tests.cast import Cast
from tests.serving.legacy.callers import Caller, accept
from tests.serving.legacy.test_takeover import _only, _text, _waits


class Unheard:
    """Implements `runtime.ports.Notifier` for a round that must send no notification."""

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        raise AssertionError(message)

    def log(self, level: str, data: object, logger: str | None) -> None:
        raise AssertionError(data)


pytestmark = pytest.mark.django_db(transaction=True)


async def test_what_a_tools_own_code_says_is_written_though_its_round_ends_at_once(
    asking: Cast,
) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    tool = ToolTasks(NotificationChannel(Unheard()))
    tool.enter()
    _only().outgoing.send(messages.log_message("info", "said last", None))
    await tool.end()
    tool.leave()
    await caller.answer(shown.requests[0], accept(colour="red"))
    await shown.whole()
    assert _text(shown) == "a wall is red"
    assert [one["params"]["data"] for one in shown.of("notifications/message")] == ["said last"]
