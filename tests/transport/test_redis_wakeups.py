"""Wake-ups through a real Redis, which is stopped and started."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from channels_redis.pubsub import RedisPubSubChannelLayer

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


def test_other_processes_are_woken_and_the_sender_is_not(server: Redis) -> None:
    server.start()
    with Process(server) as first, Process(server) as second:
        assert second.is_woken_by(first)
        assert first.is_woken_by(second)
        first.wakeups.stop()
        assert not first.wakeups.problem()
        assert not second.wakes_itself()


def test_an_unreachable_redis_is_reported_once_and_recovers_by_itself(
    server: Redis, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with Process(server) as first, Process(server) as second:

        def unreachable(*, both: bool = True) -> bool:
            problems = [bool(each.wakeups.problem()) for each in (first, second)]
            return all(problems) if both else any(problems)

        for _ in range(2):
            assert _becomes(unreachable)
            first.wakeups.send()
            server.start()
            assert _becomes(lambda: not unreachable(both=False))
            assert second.is_woken_by(first)
            server.stop()
        assert _becomes(unreachable)
    said = [r.getMessage() for r in caplog.records if r.name == "mcphost.transport.redis_wakeups"]
    assert sum(text.startswith("Redis is unreachable") for text in said) == 6
    assert sum(text.startswith("Redis is reachable again") for text in said) == 4
    assert str(server.port) not in caplog.text
