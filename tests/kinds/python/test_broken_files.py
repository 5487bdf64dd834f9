"""A mistake in a tool file breaks only its own function or file."""

import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcphost.kinds.kind import KindError
from mcphost.kinds.python.discovery import MAX_FILE_BYTES, FoundFunctions, discover
from mcphost.kinds.python.kind import PythonKind
from tests.kinds.python.broken_files import (
    ENDLESS,
    FILES,
    FUNCTIONS,
    GOOD,
    function_file,
    marked_line,
    whole_file,
    write_all,
)
from tests.tool_modules import restored_modules

SHORT = 0.3
"""Seconds for files that never end."""


@pytest.fixture(autouse=True)
def _unloaded() -> Iterator[None]:
    with restored_modules():
        yield


def found_in(folder: Path, text: str, seconds: float = 10) -> FoundFunctions:
    """Discover a file `bad`, and a good one that is loaded after it."""
    (folder / "bad.py").write_text(text, "utf-8", "surrogatepass")
    (folder / "zz_good.py").write_text(GOOD)
    found = discover(folder, seconds=seconds)
    assert "zz_good.good" in found.functions
    return found


@pytest.mark.parametrize("name", ENDLESS)
def test_a_file_that_does_not_end_loading_is_abandoned_with_its_line(name, tmp_path):
    text = whole_file(ENDLESS[name])
    found = found_in(tmp_path, text, SHORT)
    assert set(found.functions) == {"zz_good.good"}
    assert found.broken["bad"].path == f"{tmp_path.name}/bad.py:{marked_line(text)}"
    assert "did not end within 0.3 seconds" in found.broken["bad"].message
    assert "mcphost_tools.bad" not in sys.modules


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def make_huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)


def make_loop(path: Path) -> None:
    path.symlink_to(path)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (make_pipe, "this is no regular file"),
        (make_endless, "this is no regular file"),
        (Path.mkdir, "this is no regular file"),
        (make_huge, "the file has more than 8,388,608 bytes"),
        (make_loop, "Too many levels of symbolic links"),
    ],
)
def test_what_is_no_file_of_a_usual_size_is_reported_and_not_read(
    tmp_path: Path, make: Callable[[Path], object], reason: str
) -> None:
    make(tmp_path / "bad.py")
    (tmp_path / "zz_good.py").write_text(GOOD)
    before = set(threading.enumerate())
    found = discover(tmp_path)
    assert set(found.functions) == {"zz_good.good"}
    assert reason in found.broken["bad"].message
    assert set(threading.enumerate()) <= before


def test_a_function_whose_schema_does_not_end_is_abandoned_alone(tmp_path: Path) -> None:
    text = function_file("json_schema_memory").replace("raise MemoryError", "while True: pass")
    found = found_in(tmp_path, text, SHORT)
    assert set(found.functions) == {"bad.beside", "zz_good.good"}
    assert found.broken["bad.bad"].path == f"{tmp_path.name}/bad.py:{marked_line(text)}"
    assert found.broken["bad.bad"].message == "bad: did not end within 0.3 seconds"


def test_a_file_that_resists_being_stopped_is_reported(tmp_path: Path) -> None:
    text = """
        import mcphost_tests_gate
        while not mcphost_tests_gate.is_set():
            try:
                mcphost_tests_gate.wait(0.001)
            except BaseException: pass
        """
    gate = threading.Event()
    sys.modules["mcphost_tests_gate"] = gate  # type: ignore[assignment]
    try:
        found = found_in(tmp_path, whole_file(text), SHORT)
    finally:
        gate.set()
    assert found.broken["bad"].message == (
        "did not end within 0.3 seconds, and has not been stopped"
    )


SHARED_STATE = """
import logging, sys, warnings
sys.stdin = sys.stdout = sys.stderr = None
warnings.simplefilter("error")
sys.setrecursionlimit(sys.getrecursionlimit() - 1)
logging.getLogger().handlers.clear()
logging.basicConfig(level=1)
logging.disable()
sys.modules["json"] = None
del sys.modules["mcphost.sdk"]
"""


def shared_state() -> tuple[object, ...]:
    root = logging.getLogger()
    return (
        (sys.stdin, sys.stdout, sys.stderr),
        list(warnings.filters),
        sys.getrecursionlimit(),
        (root.handlers[:], root.level, root.manager.disable),
        {name: sys.modules[name] for name in ("json", "mcphost.sdk")},
    )


def test_changes_of_a_file_to_process_state_are_undone(tmp_path: Path) -> None:
    before = shared_state()
    assert found_in(tmp_path, SHARED_STATE).broken == {}
    assert shared_state() == before


def test_a_path_that_is_not_a_readable_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "dangling.py").symlink_to("nowhere")
    (tmp_path / "circle.py").symlink_to("circle.py")
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "not-a-name.py").write_text("")
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe")
    Path(os.fsdecode(bytes(tmp_path) + b"/\xff.py")).write_text(GOOD)
    found = found_in(tmp_path, GOOD, SHORT)
    assert set(found.functions) == {"bad.good", "zz_good.good"}
    named = {problem.path.rpartition("/")[2] for problem in found.broken.values()}
    files = ("folder", "dangling", "circle", "pipe", "\\udcff", "not-a-name", "binary")
    assert named == {f"{name}.py:1" for name in files}
    assert all(str(problem).isprintable() for problem in found.broken.values())


def test_all_broken_files_in_one_folder_leave_the_good_functions_usable(tmp_path: Path) -> None:
    lines = write_all(tmp_path)
    kind = PythonKind()
    kind.configure(tmp_path)
    good = {reference for reference, _ in kind.choices()}
    assert good == {"zz_good.good"} | {f"{name}.beside" for name in FUNCTIONS}
    problems = kind.check()
    places = {problem.path for problem in problems}
    assert places == {f"{tmp_path.name}/{name}.py:{line}" for name, line in lines.items()}
    assert all(problem.message.isprintable() for problem in problems)
    assert not [name for name in FILES if f"mcphost_tools.{name}" in sys.modules]
    for name in FUNCTIONS:
        with pytest.raises(KindError, match=name):
            kind.compile({"function": f"{name}.bad"})
