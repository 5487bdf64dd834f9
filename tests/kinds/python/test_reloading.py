"""A changed file is loaded again, without the process being restarted."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcphost.kinds.functions.program import FunctionProgram
from mcphost.kinds.kind import KindError
from mcphost.kinds.python.kind import PythonKind, Reload
from tests.tool_modules import restored_modules

Save = Callable[..., None]

ONE = "from mcphost.sdk import tool\n@tool\ndef one() -> int: return {}\n"
OTHER = (
    "from mcphost.sdk import tool\nfrom ._common import N\n@tool\ndef other() -> int: return N\n"
)
BROKEN = "from mcphost.sdk import tool\n@tool\ndef one( -> int: return 3\n"
UNTYPED = "from mcphost.sdk import tool\n@tool\ndef one(x: set.missing) -> int: return 3\n"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    made = tmp_path / "tools"
    made.mkdir()
    with restored_modules():
        yield made


@pytest.fixture
def kind(folder: Path) -> PythonKind:
    (folder / "first.py").write_text(ONE.format(1))
    loaded = PythonKind()
    loaded.configure(folder)
    return loaded


def save(path: Path, text: str) -> None:
    """Write a file, with a time of change that no earlier state had: as if later in the same second."""
    before = path.stat().st_mtime_ns if path.exists() else 10**18
    path.write_text(text)
    os.utime(path, ns=(before + 1000, before + 1000))


def reloaded(kind: PythonKind) -> Reload:
    reload = kind.reload_if_changed()
    assert reload is not None
    return reload


def result(kind: PythonKind, reference: str) -> object:
    program = kind.compile({"function": reference}).program
    assert isinstance(program, FunctionProgram)
    return program._tool.function()


def test_nothing_is_loaded_again_while_no_file_changes(kind: PythonKind) -> None:
    before = dict(kind.functions())
    assert kind.reload_if_changed() is None
    assert kind.functions() == before


def test_an_edited_function_runs_its_new_code(kind: PythonKind, folder: Path) -> None:
    save(folder / "first.py", ONE.format(2))
    assert reloaded(kind).updated == ("first.one",)
    assert result(kind, "first.one") == 2
    assert kind.reload_if_changed() is None


def test_new_and_deleted_files_add_and_remove_functions(kind: PythonKind, folder: Path) -> None:
    save(folder / "_common.py", "N = 5")
    save(folder / "second.py", OTHER)
    reload = reloaded(kind)
    assert (reload.added, reload.updated) == (("second.other",), ())
    assert result(kind, "second.other") == 5
    (folder / "second.py").unlink()
    assert reloaded(kind).removed == ("second.other",)
    with pytest.raises(KindError):
        kind.compile({"function": "second.other"})


def test_a_file_that_others_import_changes_them(kind: PythonKind, folder: Path) -> None:
    save(folder / "_common.py", "N = 5")
    save(folder / "second.py", OTHER)
    reloaded(kind)
    save(folder / "_common.py", "N = 6")
    assert reloaded(kind).files == (folder / "_common.py",)
    assert result(kind, "second.other") == 6


@pytest.mark.parametrize("text", [BROKEN, UNTYPED, "raise SystemExit"])
def test_a_refused_function_keeps_the_code_before_until_it_is_repaired(
    kind: PythonKind, folder: Path, text: str
) -> None:
    for _ in range(2):
        save(folder / "first.py", text)
        reload = reloaded(kind)
        assert (reload.kept, reload.updated, reload.removed) == (("first.one",), (), ())
        assert len(reload.refused) == 1
        assert reload.refused[0].path.startswith("tools/first.py:")
        assert result(kind, "first.one") == 1
    save(folder / "first.py", ONE.format(4))
    reload = reloaded(kind)
    assert (reload.kept, reload.refused, reload.updated) == ((), (), ("first.one",))
    assert result(kind, "first.one") == 4


def test_files_in_packages_are_looked_at_and_hidden_folders_are_not(
    kind: PythonKind, folder: Path
) -> None:
    (folder / "pack").mkdir()
    save(folder / "pack" / "__init__.py", "from .inner import one")
    save(folder / "pack" / "inner.py", ONE.format(7))
    assert reloaded(kind).added == ("pack.one",)
    save(folder / "pack" / "inner.py", ONE.format(8))
    assert reloaded(kind).updated == ("pack.one",)
    assert result(kind, "pack.one") == 8
    (folder / ".hidden").mkdir()
    save(folder / ".hidden" / "x.py", "x = 1")
    assert kind.reload_if_changed() is None
