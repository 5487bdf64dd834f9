"""Files of a folder of tools import each other, and packages are loaded."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from mcphost.kinds.python.discovery import discover
from tests.tool_modules import restored_modules

Write = Callable[..., Path]

GOOD = """
    from mcphost.sdk import tool

    @tool
    def good() -> str:
        '''Be good.'''
        return "good"
"""
SHARED = """
    from pydantic import BaseModel

    class Zone(BaseModel):
        name: str
"""
USES = """
    from mcphost.sdk import tool
    from ._shared import Zone
    from .z_last import Other, of_last

    @tool
    def show(zone: Zone, other: Other | None = None) -> str:
        '''Use models of files beside this one.'''
        return zone.name
"""
LAST = """
    from mcphost.sdk import tool
    from ._shared import Zone

    class Other(Zone): ...

    @tool
    def of_last(other: Other) -> str:
        '''Be imported by another file before it is loaded.'''
        return other.name
"""
ORDERS = """
    from mcphost.sdk import tool
    from .._shared import Zone

    @tool
    def order(zone: Zone) -> str:
        '''Be in a file of a package.'''
        return zone.name

    @tool
    def hidden() -> str:
        return "not imported by the package"

    def helper(): ...
"""


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Write]:
    """Write files into a folder `tools`, and unload their modules afterwards."""
    folder = tmp_path / "tools"
    folder.mkdir()

    def write(**files: str) -> Path:
        for name, text in files.items():
            (folder / f"{name}.py").write_text(dedent(text))
        return folder

    with restored_modules():
        yield write


def test_files_can_import_each_other_and_are_loaded_once(write: Write) -> None:
    folder = write(_shared=SHARED, a_first=USES, z_last=LAST)
    for _ in range(2):
        found = discover(folder)
        assert found.broken == {}
        assert sorted(found.functions) == ["a_first.show", "z_last.of_last"]
        first, last = (sys.modules[f"mcphost_tools.{name}"] for name in ("a_first", "z_last"))
        assert first.Other is last.Other and issubclass(last.Other, first.Zone)


def test_a_changed_file_is_loaded_again(write: Write) -> None:
    folder = write(_shared=SHARED, a_first=GOOD + "    from . import _shared\n")
    assert not discover(folder).broken
    write(_shared="1 / 0  # changed")
    assert "a_first" in discover(folder).broken


def test_a_broken_file_breaks_only_the_files_that_import_it(write: Write) -> None:
    last = "from .b_good import good"
    found = discover(write(_shared="x = 1 / 0", a_first=USES, b_good=GOOD, z_last=last))
    assert sorted(found.functions) == ["b_good.good"]
    assert str(found.broken["a_first"]) == "tools/a_first.py:3: ZeroDivisionError: division by zero"
    assert "mcphost_tools._shared" not in sys.modules


def test_a_file_that_does_not_end_is_abandoned_in_each_importing_file(write: Write) -> None:
    endless = "import threading\nwhile True: threading.Event().wait(0.01)"
    files = {"a_first": "from . import slow", "b_good": GOOD, "slow": endless}
    found = discover(write(**files), seconds=0.3)
    assert sorted(found.functions) == ["b_good.good"]
    assert "did not end" in found.broken["a_first"].message
    assert "did not end" in found.broken["slow"].message


@pytest.mark.parametrize("line", ["from _shared import Zone", "import _shared", "import b_good"])
def test_an_absolute_import_of_a_neighbouring_file_is_refused_with_the_relative_one(
    write: Write, line: str
):
    found = discover(write(_shared=SHARED, a_first=line, b_good=GOOD))
    name = line.split()[1]
    assert found.broken["a_first"].message == (
        f"ModuleNotFoundError: No module named '{name}' (write `from .{name} import …`)"
    )
    assert "b_good.good" in found.functions
    missing = discover(write(a_first="import no_such_module")).broken["a_first"]
    assert missing.message == "ModuleNotFoundError: No module named 'no_such_module'"


def test_a_package_is_loaded_with_the_functions_of_its_own_modules(write: Write) -> None:
    folder = write(_shared=SHARED, alone=GOOD)
    shop = folder / "shop"
    shop.mkdir()
    imports = "from .orders import order, helper\nfrom ..alone import good\n"
    (shop / "__init__.py").write_text(imports)
    (shop / "orders.py").write_text(dedent(ORDERS))
    found = discover(folder)
    assert found.broken == {}
    assert sorted(found.functions) == ["alone.good", "shop.order"]


def test_an_error_in_a_package_is_reported_with_its_file(write: Write) -> None:
    folder = write(_shared=SHARED, alone=GOOD)
    shop = folder / "shop"
    shop.mkdir()
    (shop / "__init__.py").write_text("\nfrom .orders import order\n")
    (shop / "orders.py").write_text(dedent(ORDERS.replace("zone: Zone", "zone: 'no.type'")))
    assert discover(folder).broken["shop.order"].path == "shop/orders.py:5"
    (shop / "orders.py").write_text("1 / 0")
    found = discover(folder)
    assert str(found.broken["shop"]) == "shop/__init__.py:2: ZeroDivisionError: division by zero"
    assert "alone.good" in found.functions


def test_a_folder_with_python_files_but_no_init_file_is_reported(write: Write) -> None:
    folder = write(good=GOOD)
    for name in ("plain", "_private", ".hidden", "__pycache__", "data"):
        (folder / name).mkdir()
        (folder / name / ("a.txt" if name == "data" else "a.py")).write_text("1 / 0")
    found = discover(folder)
    assert [str(problem) for problem in found.broken.values()] == [
        "tools/plain: this folder has Python files, but no __init__.py: it is not loaded"
    ]
    assert sorted(found.functions) == ["good.good"]


def test_of_a_package_and_a_file_with_the_same_name_only_one_is_loaded(write: Write) -> None:
    folder = write(shop=GOOD)
    (folder / "shop").mkdir()
    (folder / "shop" / "__init__.py").write_text(dedent(GOOD))
    found = discover(folder)
    assert len(found.functions) == len(found.broken) == 1
