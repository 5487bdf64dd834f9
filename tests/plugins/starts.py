"""Counts the processes of the product that end-to-end tests start, and bounds them.

Each start costs a second or two of CPU. Whoever starts one calls `note_start`; `MAX_STARTS` is how many servers
and workers a run may start in all its test processes. More fail the run, so that tests share servers.
"""

import os
import tempfile
from collections import Counter
from pathlib import Path

import pytest

FILE = "TEST_STARTS"
"""The variable that names the file with a line for each start."""
MOST = "MAX_STARTS"
NOT_BOUNDED = "command"
"""The role of management commands, which end by themselves and are only counted."""


def note_start(role: str) -> None:
    if named := os.environ.get(FILE):
        test = os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0]
        with Path(named).open("a") as file:
            file.write(f"{role}\t{test}\n")


def pytest_configure(config: pytest.Config) -> None:
    if not _is_worker(config):
        descriptor, name = tempfile.mkstemp(prefix="mcphost-starts-")
        os.close(descriptor)
        os.environ[FILE] = name


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if not _is_worker(session.config) and _is_over(_starts()) and session.exitstatus == 0:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    starts = _starts()
    if not starts:
        return
    roles = sorted({role for role, _ in starts})
    terminalreporter.section("starts of processes")
    terminalreporter.write_line(_row(roles, "test file"))
    tests = {test: sum(starts[role, test] for role in roles) for _, test in starts}
    for test in sorted(tests, key=lambda each: (-tests[each], each)):
        terminalreporter.write_line(_row([starts[role, test] for role in roles], test))
    sums = [sum(many for (of, _), many in starts.items() if of == role) for role in roles]
    terminalreporter.write_line(_row(sums, "all"))
    if _is_over(starts):
        words = f"{_bounded(starts)} servers and workers were started; {MOST} is {os.environ[MOST]}"
        terminalreporter.write_line(f"FAILED {words}: let tests share them", red=True)


def pytest_unconfigure(config: pytest.Config) -> None:
    if not _is_worker(config) and FILE in os.environ:
        Path(os.environ.pop(FILE)).unlink(missing_ok=True)


def _row(cells: "list[str] | list[int]", last: str) -> str:
    return " ".join([*(f"{cell:>9}" for cell in cells), last])


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


def _starts() -> Counter[tuple[str, str]]:
    lines = Path(os.environ[FILE]).read_text().splitlines()
    pairs = (line.partition("\t") for line in lines)
    return Counter((role, test) for role, _, test in pairs)


def _bounded(starts: Counter[tuple[str, str]]) -> int:
    return sum(many for (role, _), many in starts.items() if role != NOT_BOUNDED)


def _is_over(starts: Counter[tuple[str, str]]) -> bool:
    most = os.environ.get(MOST)
    return most is not None and _bounded(starts) > int(most)
