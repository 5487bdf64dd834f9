"""Tests that the examples in the documents run, and that what they name exists."""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from mcphost.kinds.kind import Compiled
from mcphost.kinds.python.kind import PythonKind
from mcphost.runtime.outcomes import Complete
from mcphost.runtime.program import Program
from mcphost.testing import (
    DECLINE,
    Answers,
    Tried,
    a_call,
    accept,
    in_memory,
    model_answer,
    run_through,
)
from tests import file_map
from tests.screenshots.pages import DOCUMENT, MODES, PAGES, PAGES_FOLDER, page_list
from tests.screenshots.pictures import FOLDER, PICTURES

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "mcphost"
# Folders beside the package, whose files are named by their path from the root.
ROOTS = ("mcphost", "bench", "tests", "tools", "manage.py")
DOCUMENTS = [
    *sorted(ROOT.glob("*.md")),
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("docs/design/*.md")),
]
# The documents that are about the code.
INNER = [
    ROOT / "CONTRIBUTING.md",
    ROOT / "docs" / "ARCHITECTURE.md",
    ROOT / "docs" / "glossary.md",
    *sorted(ROOT.glob("docs/design/*.md")),
]
MOST_BYTES_OF_PICTURES = 1_500_000
MAX_BYTES_OF_PAGES = 5_000_000
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)

# The arguments for each documented function, and a text that its result must contain.
CALLS: dict[str, tuple[dict[str, object], str]] = {
    "greet_politely": ({"name": "Ada"}, "Good day, Ada."),
    "shout": ({"text": "hello"}, "HELLO"),
    "book_table": ({"guests": 3}, "A table for 3, today."),
    "forecast": ({"place": "Oslo"}, "21.5"),
    "withdraw": ({"amount": 5}, "5 it is."),
    "count_visit": ({"page": "home"}, "1"),
    "delete_folder": ({"name": "old"}, "old is deleted."),
    "book_flight": ({"to": "Oslo"}, "To Oslo, window, bags: 2."),
    "send_parcel": ({"what": "book"}, "The book goes to Oslo, stars: 0."),
    "plan_dinner": ({"guests": 4}, "2027-01-31: lentils for 4."),
    "order_parts": ({"part": "wheel"}, ": 3 of wheel."),
    "raffle": ({"names": ["Ada"]}, "And the winner is Ada!"),
    "pay": ({"amount": 5}, "5 is paid."),
    "release": ({"version": "v2"}, "v2 is out."),
    "title_for": ({"text": "It rains."}, "Rain"),
    "empty_bin": ({}, "Gone: 3 files."),
    "paint": ({"what": "door"}, "A green door."),
    "print_album": ({"album": "Oslo", "photos": 2}, "Oslo is printed, matt."),
    "import_orders": ({"day": "2026-11-23"}, "2 orders of 2026-11-23"),
    "add_note": ({"text": "a"}, "Added"),
    "walk": ({"steps": 2}, "There."),
    "compress": ({"text": "four"}, "4"),
    "review_code": ({"code": "1 + 1"}, "a quick review"),
    "welcome": ({}, "# Welcome"),
    "seal": ({}, "AAAAAAAAAAA="),
    "greet_in_own_language": ({}, "Hallo!"),
    "office": ({"city": "Oslo", "floor": "2"}, '"floor\\":2'),
}
# The answers for the functions that ask, and the keys of the questions in each of their rounds.
ANSWERS: dict[str, tuple[dict[str, Mapping[str, Any]], list[list[str]]]] = {
    "delete_folder": ({"approval": accept(really=True)}, [["approval"]]),
    "book_flight": ({"seat": accept(seat="window", bags=2)}, [["seat"]]),
    "send_parcel": (
        {"address": accept(street="Hill 1", city="Oslo"), "rating": DECLINE},
        [["address"], ["rating"]],
    ),
    "plan_dinner": (
        {"when": accept(day="2027-01-31"), "what": accept(menu="lentils")},
        [["when", "what"]],
    ),
    "order_parts": ({"amount": accept(amount=3)}, [["amount"]]),
    "raffle": ({"approval": accept(announce=True)}, [["approval"]]),
    "pay": ({"payment": {"action": "accept"}}, [["payment"]]),
    "release": ({"page": {"action": "accept"}}, [["page"]]),
    "title_for": ({"title": model_answer("Rain")}, [["title"]]),
    "empty_bin": ({"sure": accept(sure=True)}, [["sure"]]),
    "paint": ({"color": accept(color="green")}, [["color"]]),
    "greet_in_own_language": ({"language": accept(language="German")}, [["language"]]),
    "print_album": ({"paper": accept(paper="matt")}, [["paper"], []]),
}
# Completions: the typed text, the arguments that were filled in before, and the expected values.
SUGGESTIONS: list[tuple[str, str, str, dict[str, str], list[str]]] = [
    ("review_code", "depth", "th", {}, ["thorough"]),
    ("review_code", "language", "P", {}, ["Python", "Prolog"]),
    ("office", "floor", "", {"city": "Oslo"}, ["1", "2"]),
    ("office", "floor", "", {}, ["1"]),
]


def _short(document: Path) -> str:
    return str(document.relative_to(ROOT))


def _tools(folder: Path) -> PythonKind:
    """Return a kind that has loaded every Python block of the documents, each as a file."""
    for document in (ROOT / "README.md", ROOT / "docs" / "writing-tools.md"):
        for number, block in enumerate(BLOCK.findall(document.read_text())):
            name = document.stem.lower().replace("-", "_")
            (folder / f"doc_{name}_{number}.py").write_text(block)
    kind = PythonKind()
    kind.configure(folder)
    return kind


def _compiled(folder: Path) -> dict[str, Compiled]:
    kind = _tools(folder)
    assert not kind.check()
    compiled = [kind.compile({"function": reference}) for reference, _ in kind.choices()]
    return {one.name: one for one in compiled}


async def _tried(program: Program, arguments: dict[str, object], answers: Answers) -> Tried:
    tried = await run_through(
        program, a_call(arguments), answers, in_memory(done={"paid", "signed"})
    )
    assert isinstance(tried.outcome, Complete), tried
    assert not tried.outcome.is_error, tried
    return tried


def _result(tried: Tried) -> Mapping[str, Any]:
    assert isinstance(tried.outcome, Complete)
    return tried.outcome.result


async def test_every_documented_function_loads_and_answers(tmp_path: Path) -> None:
    compiled = _compiled(tmp_path)
    assert set(compiled) == set(CALLS)
    for name, (arguments, word) in CALLS.items():
        answers, rounds = ANSWERS.get(name, ({}, []))
        tried = await _tried(compiled[name].program, arguments, answers)
        assert word in json.dumps(_result(tried))
        assert [list(keys) for keys in tried.asked] == rounds


async def test_every_documented_test_passes(tmp_path: Path) -> None:
    _compiled(tmp_path)
    tests = [
        function
        for name, module in sys.modules.items()
        if name.startswith("mcphost_tools.doc_")
        for called, function in vars(module).items()
        if called.startswith("test_")
    ]
    assert len(tests) == 2
    for test in tests:
        await test()


async def test_every_documented_suggestion_is_returned(tmp_path: Path) -> None:
    compiled = _compiled(tmp_path)
    for name, argument, typed, filled, values in SUGGESTIONS:
        asked = {
            "argument": {"name": argument, "value": typed},
            "context": {"arguments": filled},
        }
        completer = compiled[name].completer
        assert completer is not None
        result = _result(await _tried(completer, asked, {}))
        assert result["completion"]["values"] == values


@pytest.mark.parametrize("document", DOCUMENTS, ids=_short)
def test_every_link_between_documents_has_a_target(document: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", document.read_text()):
        name, _, anchor = target.partition("#")
        led = (document.parent / name).resolve() if name else document
        assert led.exists(), f"{_short(document)}: {target}"
        if anchor and led.suffix == ".md":
            assert anchor in _anchors(led), f"{_short(document)}: {target}"


def test_every_picture_is_made_by_the_script_and_shown_and_small() -> None:
    taken = {f"{picture.name}.webp" for picture in PICTURES}
    files = [path for path in FOLDER.iterdir() if path.is_file()]
    shown = {
        Path(target).name
        for document in DOCUMENTS
        for target in re.findall(r"!\[[^]]+\]\((?:docs/)?(images/[^)]+)\)", document.read_text())
    }
    assert {path.name for path in files} == taken == shown
    assert sum(path.stat().st_size for path in files) < MOST_BYTES_OF_PICTURES


def test_every_page_has_a_small_picture_in_each_mode_and_is_listed() -> None:
    names = {f"{mode}/{page.name}.webp" for mode in MODES for page in PAGES}
    files = {str(path.relative_to(PAGES_FOLDER)): path for path in PAGES_FOLDER.glob("*/*")}
    assert set(files) == names, "run `make screenshots PICTURES=pages`"
    assert sum(path.stat().st_size for path in files.values()) < MAX_BYTES_OF_PAGES
    assert DOCUMENT.read_text() == page_list(), "run `make screenshots PICTURES=pages`"


def _anchors(document: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a document."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("document", INNER, ids=_short)
def test_every_module_and_name_in_the_code_documents_exists(document: Path) -> None:
    for path, name in _named(document.read_text()):
        assert path.exists(), f"{_short(document)}: {path}"
        if name:
            assert re.search(rf"\b{name}\b", path.read_text()), f"{_short(document)}: {path} {name}"


def _named(text: str) -> Iterator[tuple[Path, str]]:
    """Yield modules such as `calls.sessions` or `serving/replies.py`, and the names in them."""
    packages = {each.name for each in PACKAGE.iterdir() if (each / "__init__.py").exists()}
    for dotted in re.findall(r"`((?:\w+\.)+\w+)`", text):
        first, *rest = dotted.split(".")
        if first not in packages or rest[-1] in ("py", "md"):
            continue
        path = PACKAGE / first
        while rest and ((path / rest[0]).is_dir() or (path / f"{rest[0]}.py").exists()):
            path /= rest.pop(0)
        yield (
            (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")),
            "".join(rest[:1]),
        )
    for path, cell in re.findall(r"`([\w/]+\.py)`(?: \| ([^|\n]*))?", text):
        inside = PACKAGE / path if path.split("/")[0] not in ROOTS else ROOT / path
        for name in ["", *re.findall(r"`([\w.]+)`", cell)]:
            yield inside, name.split(".")[-1]


def test_the_architecture_lists_every_package_and_every_design_document() -> None:
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text()
    for package in PACKAGE.iterdir():
        assert not (package / "__init__.py").exists() or f"`{package.name}/`" in text, package
    for question in (ROOT / "docs" / "design").iterdir():
        assert f"](design/{question.name})" in text, question
        assert question.read_text().split("\n")[0].endswith("?"), question


def test_the_file_map_matches_the_docstrings_and_names_every_module() -> None:
    text = file_map.DOCUMENT.read_text()
    section = text[text.index(file_map.HEADING) :]
    assert section == file_map.file_map(), "run `python -m tests.file_map`"
    listed = [path for folder in file_map.packages() for _, path in file_map.modules(folder)]
    sources = {path for path in PACKAGE.rglob("*.py") if "migrations" not in path.parts}
    assert sorted(listed) == sorted(p for p in sources if p.stem not in file_map.BOILERPLATE)
    assert [path for path in listed if not file_map.summary(path)] == []
