"""Notifications of a tool arrive in order, progress increases, and both end with the call."""

import asyncio
from contextvars import ContextVar
from typing import Any

import pytest

from mcphost.runtime.notification_channel import CallEndedError, NotificationChannel
from mcphost.runtime.ports import Misuse, no_op

scene: ContextVar[str] = ContextVar("scene", default="outside")


class Notes:
    """A notifier that records its calls and their context variables."""

    def __init__(self) -> None:
        self.said: list[tuple[Any, ...]] = []
        self.scenes: list[str] = []

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.said.append((progress, total, message))
        self.scenes.append(scene.get())

    def log(self, level: str, data: Any, logger: str | None) -> None:
        self.said.append((level, data, logger))


@pytest.mark.requirement("progress.rises")
async def test_progress_that_does_not_increase_is_dropped() -> None:
    notes = Notes()
    channel = NotificationChannel(notes)
    for value in (0, 2, 2, 1, 3.5):
        channel.progress(value, 10, None)
    assert [said[0] for said in notes.said] == [0, 2, 3.5]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 10**400])
async def test_progress_and_total_are_finite(number: float) -> None:
    channel = NotificationChannel(Notes())
    with pytest.raises(ValueError, match="finite"):
        channel.progress(number, None, None)
    with pytest.raises(ValueError, match="finite"):
        channel.progress(1, number, None)


@pytest.mark.parametrize(
    "data",
    [
        2**70,
        [object, 2**70],
    ],
)
async def test_log_data_that_json_cannot_represent_is_logged_as_text(data: Any) -> None:
    notes = Notes()
    NotificationChannel(notes).log("info", data, None)
    assert notes.said[0][1].isascii()


async def test_unpaired_surrogates_in_notifications_are_replaced() -> None:
    notes = Notes()
    NotificationChannel(notes).log("info", {"text": ["half a \ud83d"]}, None)
    NotificationChannel(notes).progress(1, None, "half a \ud83d")
    assert notes.said[0][1] == {"text": ["half a \ufffd"]}
    assert notes.said[1][2] == "half a \ufffd"


@pytest.mark.requirement("progress.ends")
async def test_notifications_after_the_end_raise_and_each_attempt_is_reported() -> None:
    notes, reported = Notes(), []
    channel = NotificationChannel(notes, misused=lambda *report: reported.append(report))
    assert channel.open
    channel.end()
    assert not channel.open
    with pytest.raises(CallEndedError):
        channel.progress(1, None, None)
    with pytest.raises(CallEndedError):
        channel.log("info", "late", None)
    assert notes.said == []
    await asyncio.sleep(0)
    assert reported == [(Misuse.OVER, None)] * 2


async def test_notifications_from_a_thread_arrive_on_the_loop_in_order() -> None:
    notes = Notes()
    channel = NotificationChannel(notes)

    def work() -> None:
        channel.log("info", "begun", None)
        channel.progress(1, 2, "half")
        channel.progress(2, 2, "done")

    await asyncio.to_thread(work)
    assert notes.said == [("info", "begun", None), (1, 2, "half"), (2, 2, "done")]


async def test_a_notification_from_a_thread_after_the_end_is_dropped() -> None:
    notes = Notes()
    channel = NotificationChannel(notes)
    said = asyncio.to_thread(channel.progress, 1, None, None)
    task = asyncio.ensure_future(said)
    task.add_done_callback(lambda _: None)
    loop = asyncio.get_running_loop()
    original = loop.call_soon_threadsafe

    def first_end(*call: Any, **options: Any) -> Any:
        channel.end()
        return original(*call, **options)

    loop.call_soon_threadsafe = first_end  # type: ignore[method-assign]
    await task
    assert notes.said == []


async def test_the_notifier_runs_in_the_context_that_created_the_channel() -> None:
    notes = Notes()
    channel = NotificationChannel(notes)
    scene.set("inside the tool")
    channel.progress(1, None, None)
    await asyncio.to_thread(channel.progress, 2, None, None)
    assert notes.scenes == ["outside", "outside"]


async def test_actions_on_the_channel_run_in_order_and_not_after_the_end() -> None:
    notes = Notes()
    channel = NotificationChannel(notes)
    channel.log("info", "before", None)
    channel.do(lambda: notes.said.append(("closed",)))
    channel.log("info", "after", None)
    assert [said[-2] if len(said) > 1 else said[0] for said in notes.said] == [
        "before",
        "closed",
        "after",
    ]
    channel.silent = True
    channel.do(lambda: notes.said.append(("closed again",)))
    assert len(notes.said) == 3
    no_op()
    channel.end()
    with pytest.raises(CallEndedError):
        channel.do(no_op)


async def test_an_unknown_log_level_is_refused_with_the_levels() -> None:
    notes = Notes()
    with pytest.raises(ValueError, match="'loud' is not a log level: use one of debug"):
        NotificationChannel(notes).log("loud", "text", None)
    assert notes.said == []
