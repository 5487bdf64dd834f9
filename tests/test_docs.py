"""The examples in the documents run."""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mcphost.kinds.kind import Compiled
from mcphost.kinds.python.kind import PythonKind
from mcphost.kinds.python.trying import (
    DECLINE,
    Answers,
    Tried,
    a_call,
    accept,
    in_memory,
    run_through,
    says,
)
from mcphost.runtime.outcomes import Complete
from mcphost.runtime.program import Program

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)

# What each documented function is asked with, and a word that its answer must hold.
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
    "title_for": ({"text": "It rains."}, "Rain"),
    "empty_bin": ({}, "Gone: 3 files."),
    "paint": ({"what": "door"}, "A green door."),
    "add_note": ({"text": "a"}, "Added"),
    "walk": ({"steps": 2}, "There."),
    "compress": ({"text": "four"}, "4"),
    "review_code": ({"code": "1 + 1"}, "a quick review"),
    "welcome": ({}, "# Welcome"),
    "seal": ({}, "AAAAAAAAAAA="),
    "office": ({"city": "Oslo", "floor": "2"}, '"floor\\":2'),
}
# What those that ask are answered, and the keys of the questions in each of their rounds.
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
    "title_for": ({"title": says("Rain")}, [["title"]]),
    "empty_bin": ({"sure": accept(sure=True)}, [["sure"]]),
    "paint": ({"color": accept(color="green")}, [["color"]]),
}
# What is suggested for arguments: what was typed, what was filled in before, and the values.
SUGGESTIONS: list[tuple[str, str, str, dict[str, str], list[str]]] = [
    ("review_code", "depth", "th", {}, ["thorough"]),
    ("review_code", "language", "P", {}, ["Python", "Prolog"]),
    ("office", "floor", "", {"city": "Oslo"}, ["1", "2"]),
    ("office", "floor", "", {}, ["1"]),
]


def _tools(folder: Path) -> PythonKind:
    """A kind that has loaded every Python block of the documents, each a file of its own."""
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
    tried = await run_through(program, a_call(arguments), answers, in_memory(done={"paid"}))
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


def test_the_guide_begins_with_what_everybody_has_to_know() -> None:
    guide = (ROOT / "docs" / "writing-tools.md").read_text()
    first = guide.split("\n\n")[1]
    assert "run again from the" in first
    assert "`await ctx.step(" in first


async def test_every_documented_suggestion_is_made(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("document", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/*.md")))
def test_every_link_between_documents_leads_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text()):
        assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150
