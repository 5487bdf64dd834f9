"""Compares CPU and memory of code with those of a peer in the same run, in tests marked `cost`.

That needs a machine that does little else, so only `make cost` runs them; it ends with a table of all
CPU times. What can be counted is counted instead (tests/work_counts.py).
"""

import ctypes
import gc
import time
from collections.abc import Callable
from pathlib import Path

import pytest

TRIES = 15
"""The number of measurements. The least counts, because other processes use the machine, too."""

Act = Callable[[], object]
CompareCpu = Callable[[str, Act, Act, float], None]

_LIBC = ctypes.CDLL(None)


@pytest.fixture
def compare_cpu(record_property: Callable[[str, object], None]) -> CompareCpu:
    """Return a function that requires an act to take at most so many times the CPU of its peer."""

    def compare(what: str, act: Act, peer: Act, most: float) -> None:
        spent, other = _least(act, peer)
        row = f"{spent * 1e3:9.3f} {other * 1e3:9.3f} {spent / other:9.2f} {most:9.0f} {what}"
        record_property("cpu", row)
        assert spent <= most * other, row

    return compare


def _least(*acts: Act) -> list[float]:
    least = [float("inf")] * len(acts)
    gc.disable()  # a collection walks what all other tests left, in whichever act it comes
    try:
        for _ in range(TRIES):
            for number, act in enumerate(acts):
                began = time.thread_time()
                act()
                least[number] = min(least[number], time.thread_time() - began)
    finally:
        gc.enable()
    return least


def growth_of(act: Act) -> int:
    """Return the peak growth of this process's resident memory while `act` ran, in bytes."""
    _LIBC.malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = _status("VmRSS")
    act()
    return max(0, _status("VmHWM") - before)


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (each for each in lines if each.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    rows = [
        f"{row}: {report.nodeid}"
        for outcome in ("passed", "failed")
        for report in terminalreporter.getreports(outcome)
        for name, row in report.user_properties
        if name == "cpu" and report.when == "call"
    ]
    if rows:
        terminalreporter.section("CPU")
        head = " ".join(f"{word:>9}" for word in ("ms", "peer", "ratio", "at most"))
        for line in (head, *rows):
            terminalreporter.write_line(line)
