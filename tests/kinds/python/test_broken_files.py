"""A mistake in a tool file is the problem of its function or its file, and of nothing else."""

import logging
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcphost.kinds.kind import KindError
from mcphost.kinds.python.discovery import FoundFunctions, discover
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

ROOT = Path(__file__).parents[3]
SHORT = 0.3
"""Seconds for files that never end."""


@pytest.fixture(autouse=True)
def _unloaded() -> Iterator[None]:
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def found_in(folder: Path, text: str, seconds: float = 10) -> FoundFunctions:
    """Discover a file `bad`, and a good one that is loaded after it."""
    (folder / "bad.py").write_text(text, "utf-8", "surrogatepass")
    (folder / "zz_good.py").write_text(GOOD)
    found = discover(folder, seconds=seconds)
    assert "zz_good.good" in found.functions
    return found


@pytest.mark.parametrize("name", ENDLESS)
def test_a_file_that_never_ends_is_given_up_with_the_line_at_which_it_was(name, tmp_path):
    text = whole_file(ENDLESS[name])
    found = found_in(tmp_path, text, SHORT)
    assert set(found.functions) == {"zz_good.good"}
    assert found.broken["bad"].path == f"{tmp_path.name}/bad.py:{marked_line(text)}"
    assert "did not end within 0.3 seconds" in found.broken["bad"].message
    assert "mcphost_tools.bad" not in sys.modules


def test_a_function_whose_schema_never_ends_is_given_up_alone(tmp_path: Path) -> None:
    text = function_file("json_schema_memory").replace("raise MemoryError", "while True: pass")
    found = found_in(tmp_path, text, SHORT)
    assert set(found.functions) == {"bad.beside", "zz_good.good"}
    assert found.broken["bad.bad"].path == f"{tmp_path.name}/bad.py:{marked_line(text)}"
    assert found.broken["bad.bad"].message == "bad: did not end within 0.3 seconds"


def test_a_file_that_stops_its_end_says_so(tmp_path: Path) -> None:
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


def test_what_a_file_defines_after_its_time_is_ignored(tmp_path: Path) -> None:
    text = "import mcphost_tests_gate\nmcphost_tests_gate.wait(60)\n" + GOOD
    (tmp_path / "late.py").write_text(text)
    gate = threading.Event()
    sys.modules["mcphost_tests_gate"] = gate  # type: ignore[assignment]
    found = discover(tmp_path, seconds=SHORT)
    (thread,) = (each for each in threading.enumerate() if each.name == "mcphost-load-late")
    gate.set()
    thread.join(60)
    assert not thread.is_alive()
    assert found.functions == {}
    assert "mcphost_tools.late" not in sys.modules


ODD_VALUES = """
class Odd:
    def __getattribute__(self, name):
        raise SystemExit(name)
    __eq__ = __bool__ = __len__ = __repr__ = __call__ = __getattribute__
    __hash__ = None

class Meta(type):
    def __getattribute__(cls, name):
        raise SystemExit(name)

odd = Odd()
OddClass = Meta("OddClass", (), {})
globals()[5] = odd
"""


def test_values_that_raise_at_every_touch_stop_no_function_beside_them(tmp_path: Path) -> None:
    found = found_in(tmp_path, ODD_VALUES + GOOD)
    assert set(found.functions) == {"bad.good", "zz_good.good"}
    assert found.broken == {}


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


def test_what_a_file_changes_of_the_process_is_undone(tmp_path: Path) -> None:
    before = shared_state()
    assert found_in(tmp_path, SHARED_STATE).broken == {}
    assert shared_state() == before


def test_a_thread_that_a_file_starts_does_not_keep_the_process_from_ending(tmp_path: Path) -> None:
    text = """
        import threading
        import mcphost_tests_gate
        thread = threading.Thread(target=mcphost_tests_gate.wait, args=(60,))
        thread.start()
        """
    gate = threading.Event()
    sys.modules["mcphost_tests_gate"] = gate  # type: ignore[assignment]
    try:
        found_in(tmp_path, whole_file(text))
        assert sys.modules["mcphost_tools.bad"].thread.daemon
    finally:
        gate.set()


def test_a_path_that_is_no_file_is_reported(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("folder", ["file", "circle", "x" * 300])
def test_a_folder_that_cannot_be_read_is_reported(folder: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "circle").symlink_to("circle")
    (tmp_path / "zz_good.py").write_text(GOOD)
    found = discover(tmp_path / folder, tmp_path)
    assert set(found.functions) == {"zz_good.good"}
    assert found.broken[folder].message.startswith("this folder of tools cannot be read: ")


def test_a_folder_may_be_relative_to_where_the_process_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path.parent)
    assert discover(Path(tmp_path.name)).broken == {}
    (tmp_path / "bad.py").write_text("x = 1\n1 / 0\n")
    assert discover(Path(tmp_path.name)).broken["bad"].path == f"{tmp_path.name}/bad.py:2"


def test_all_mistakes_in_one_folder_stop_nothing_else(tmp_path: Path) -> None:
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


TRACED = """
import sys
from pathlib import Path
from mcphost.kinds.python.discovery import discover

(missing,) = discover(Path(sys.argv[1]), seconds=0.1).broken.values()
assert "has not been stopped" in missing.message
sys.settrace(lambda *_: None)
(lambda: None)()
"""


def test_calls_can_be_traced_after_a_file_that_blocks_for_ever(tmp_path: Path) -> None:
    """As coverage and debuggers do. In a process of its own: a call that never begins cannot be ended."""
    (tmp_path / "bad.py").write_text("import time\ntime.sleep(3600)\n")
    argv = (sys.executable, "-c", TRACED, str(tmp_path))
    subprocess.run(argv, check=True, timeout=60, cwd=ROOT)
