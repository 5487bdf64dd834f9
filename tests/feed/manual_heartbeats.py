"""Heartbeats whose clock is driven by hand."""

from mcphost.feed.nodes import ABSENT_SECONDS, BEAT_SECONDS, Heartbeat
from tests.feed.test_loop import HandClock


def outlast_a_restart(heartbeat: Heartbeat, clock: HandClock) -> None:
    """Let the time pass in which another process may come back, with heartbeats all the while."""
    for _ in range(int(ABSENT_SECONDS / BEAT_SECONDS) + 2):
        clock.now += BEAT_SECONDS
        heartbeat.beat()
