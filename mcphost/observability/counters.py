"""Numbers about the process: how often, and how many right now.

A closed set, so that a number that nobody can look up in docs/reference.md does not exist. Later a
metrics page reads `snapshot()`.
"""

from collections.abc import Callable


class Number:
    """Rises, and falls if it says how many there are. It is added to in one thread at a time.

    No lock: calls are counted by the ten thousand per second.
    """

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0

    def add(self, by: int = 1) -> None:
        self.value += by


# Counted since the process started, each where it happens.
requests = Number()
refusals = Number()
rounds = Number()
rounds_failed = Number()
records_written = Number()
records_lost = Number()
records_refused = Number()
streams_cut = Number()
loop_blocks = Number()
feed_gaps = Number()
# How many there are right now.
streams_open = Number()

_NUMBERS = {
    "requests": requests,
    "refusals": refusals,
    "rounds": rounds,
    "rounds_failed": rounds_failed,
    "records_written": records_written,
    "records_lost": records_lost,
    "records_refused": records_refused,
    "streams_cut": streams_cut,
    "loop_blocks": loop_blocks,
    "feed_gaps": feed_gaps,
    "streams_open": streams_open,
}

# What somebody knows anyway is asked for when it is wanted.
_probes: dict[str, Callable[[], int] | None] = {"records_waiting": None, "threads_lost": None}


def measure(name: str, probe: Callable[[], int]) -> None:
    """Ask `probe` for a number from now on. Raises KeyError for one that is not in the set."""
    if name not in _probes:
        raise KeyError(name)
    _probes[name] = probe


def snapshot() -> dict[str, int]:
    """Every number by name, those at zero and those that nobody measures yet, too."""
    counted = {name: number.value for name, number in _NUMBERS.items()}
    return counted | {name: probe() if probe else 0 for name, probe in _probes.items()}
