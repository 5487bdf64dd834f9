"""Wake-ups through a real Redis, which is stopped and started."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from channels_redis.pubsub import RedisPubSubChannelLayer

from mcphost.observability import health
from mcphost.transport import wiring
from mcphost.transport.redis_wakeups import Wakeups
from tests.redis import Redis, redis

PATIENCE = 20.0
BEACON = 1.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Redis]:
    with redis(tmp_path) as made:
        yield made


class Process:
    """The wake-ups of one process, and whether it was woken. They end with the `with` block."""

    def __init__(self, server: Redis) -> None:
        self.woken = threading.Event()
        self.wakeups = Wakeups(
            lambda: RedisPubSubChannelLayer(hosts=[server.url]), self.woken.set, BEACON
        )

    def __enter__(self) -> "Process":
        self.wakeups.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.wakeups.stop()

    def wakes_itself(self) -> bool:
        """Return whether it is woken again and again by what it sends, others being quiet."""

        def sleeps_on() -> bool:
            self.woken.clear()  # also of what another process sent before, and arrives late
            self.wakeups.send()
            return not self.woken.wait(3 * BEACON)

        return not _becomes(sleeps_on)

    def is_woken_by(self, other: "Process") -> bool:
        """Send until one arrives: wake-ups sent before the other listens are lost."""
        self.woken.clear()

        def told() -> bool:
            other.wakeups.send()
            return self.woken.wait(0.1)

        return _becomes(told)


def _becomes(test: Callable[[], bool]) -> bool:
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        if test():
            return True
        time.sleep(0.02)  # poll another thread
    return False


def test_the_others_are_woken_and_the_sender_is_not(server: Redis) -> None:
    server.start()
    with Process(server) as first, Process(server) as second:
        assert second.is_woken_by(first)
        assert first.is_woken_by(second)
        first.wakeups.stop()
        assert not first.wakeups.problem()
        assert not second.wakes_itself()


def test_redis_away_is_said_once_and_heals_by_itself(
    server: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with Process(server) as first, Process(server) as second:

        def away(*, both: bool = True) -> bool:
            problems = [bool(each.wakeups.problem()) for each in (first, second)]
            return all(problems) if both else any(problems)

        for _ in range(2):
            assert _becomes(away)
            first.wakeups.send()
            server.start()
            assert _becomes(lambda: not away(both=False))
            assert second.is_woken_by(first)
            server.stop()
        assert _becomes(away)
    said = [r.getMessage() for r in caplog.records if r.name == "mcphost.transport.redis_wakeups"]
    assert sum(text.startswith("Redis is unreachable") for text in said) == 6
    assert sum(text.startswith("Redis is reachable again") for text in said) == 4
    assert str(server.port) not in caplog.text


class FailsWhenCancelled(RedisPubSubChannelLayer):
    """A layer whose connection breaks in the moment in which its reader is cancelled."""

    async def receive(self, channel: str) -> dict[str, object]:
        try:
            return await self._get_layer().receive(channel)
        except asyncio.CancelledError:
            raise ConnectionError from None


def test_a_connection_that_breaks_while_the_process_stops_delays_nothing(
    server: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    server.start()
    before = set(threading.enumerate())
    woken = threading.Event()
    wakeups = Wakeups(lambda: FailsWhenCancelled(hosts=[server.url]), woken.set, BEACON)
    with Process(server) as other:
        wakeups.start()

        def told() -> bool:
            other.wakeups.send()
            return woken.wait(0.1)

        assert _becomes(told)
        wakeups.stop(PATIENCE)
    # The other process waits for its own thread only for a while.
    assert _becomes(lambda: set(threading.enumerate()) <= before), threading.enumerate()
    assert "Redis is unreachable" not in caplog.text


class LosesCancellations(RedisPubSubChannelLayer):
    """A layer that goes on when it is cancelled while it sends, and whose reader fails at times."""

    def __init__(self, *hosts: str) -> None:
        super().__init__(hosts=list(hosts))
        self.sends = asyncio.Event()
        self.failures = 1

    async def group_send(self, group: str, message: dict[str, object]) -> None:
        await self._get_layer().group_send(group, message)
        self.sends.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(BEACON / 2)  # a slow send, which takes no notice of being cancelled

    async def receive(self, channel: str) -> dict[str, object]:
        await self.sends.wait()  # so a cancellation finds the sender sending
        if self.failures:
            self.failures -= 1
            raise ConnectionError
        received: dict[str, object] = await self._get_layer().receive(channel)
        return received


def test_a_cancellation_that_the_client_library_loses_delays_nothing(server: Redis) -> None:
    server.start()
    woken = threading.Event()
    wakeups = Wakeups(lambda: LosesCancellations(server.url), woken.set, BEACON)
    with Process(server) as other:
        wakeups.start()
        thread = wakeups._thread
        assert thread is not None

        def told() -> bool:
            other.wakeups.send()
            return woken.wait(0.1)

        assert _becomes(told)  # it has connected again
        wakeups.stop(PATIENCE)
        assert not thread.is_alive()


def test_nothing_is_started_or_said_where_processes_share_no_layer() -> None:
    alone = Wakeups(lambda: None)
    alone.start()
    alone.send()
    alone.stop()
    assert alone.problem() is None
    assert wiring.shared_layer() is None


def test_the_process_tells_of_redis_without_being_unready() -> None:
    assert "redis" not in health.registry.names()
    assert "redis" not in health.warnings()
