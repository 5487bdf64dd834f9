"""Numbers about the process: how often, and how many right now.

A closed set, so that a number that nobody can look up in docs/reference.md does not exist. Later a
metrics page reads `snapshot()`.
"""

import threading
from collections import Counter as Tally
from enum import StrEnum


class Counter(StrEnum):
    """What is counted since the process started; never falls."""

    REQUESTS = "requests"
    REFUSALS = "refusals"
    ROUNDS = "rounds"
    ROUNDS_FAILED = "rounds_failed"
    RECORDS_WRITTEN = "records_written"
    RECORDS_LOST = "records_lost"
    RECORDS_REFUSED = "records_refused"
    STREAMS_CUT = "streams_cut"
    LOOP_BLOCKS = "loop_blocks"
    FEED_GAPS = "feed_gaps"


class Gauge(StrEnum):
    """What there is right now; rises and falls."""

    CALLS_RUNNING = "calls_running"
    STREAMS_OPEN = "streams_open"
    RECORDS_WAITING = "records_waiting"
    THREADS_LOST = "threads_lost"


class Board:
    """Numbers that any thread may change."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Tally[str] = Tally()
        self._levels: Tally[str] = Tally()

    def count(self, counter: Counter, by: int = 1) -> None:
        """Raises ValueError for a negative `by`: a counter never falls."""
        if by < 0:
            raise ValueError("a counter never falls")
        with self._lock:
            self._counts[counter] += by

    def shift(self, gauge: Gauge, by: int) -> None:
        """Let a gauge rise or fall by so much."""
        with self._lock:
            self._levels[gauge] += by

    def place(self, gauge: Gauge, level: int) -> None:
        """Set a gauge to what was measured."""
        with self._lock:
            self._levels[gauge] = level

    def snapshot(self) -> dict[str, int]:
        """Every counter and gauge by name, those at zero too."""
        with self._lock:
            counts = {name.value: self._counts[name] for name in Counter}
            return counts | {name.value: self._levels[name] for name in Gauge}


board = Board()
count = board.count
shift = board.shift
place = board.place
snapshot = board.snapshot
