"""The examples in the documents run."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from mcphost.kinds.kind import Compiled
from mcphost.kinds.python.kind import PythonKind
from mcphost.protocol.eras import REVISION, Era
from mcphost.runtime.call import Call, Client, Delivery, Principal, PrincipalKind
from mcphost.runtime.journal import EMPTY
from mcphost.runtime.outcomes import Complete
from mcphost.runtime.ports import Ports
from mcphost.runtime.program import Program
from mcphost.runtime.threads import ToolThreads

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)

# What each documented function is asked with, and a word that its answer must hold.
CALLS: dict[str, tuple[dict[str, object], str]] = {
    "greet_politely": ({"name": "Ada"}, "Good day, Ada."),
    "shout": ({"text": "hello"}, "HELLO"),
    "book_table": ({"guests": 3}, "A table for 3, today."),
    "forecast": ({"place": "Oslo"}, "21.5"),
    "withdraw": ({"amount": 5}, "5 it is."),
    "add_note": ({"text": "a"}, "Added"),
    "walk": ({"steps": 2}, "There."),
    "compress": ({"text": "four"}, "4"),
    "review_code": ({"code": "1 + 1"}, "a quick review"),
    "welcome": ({}, "# Welcome"),
    "seal": ({}, "AAAAAAAAAAA="),
    "office": ({"city": "Oslo", "floor": "2"}, '"floor\\":2'),
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


def _call(tool: str, arguments: dict[str, object]) -> Call:
    tenant = UUID(int=1)
    return Call(
        id=uuid4(),
        tenant=tenant,
        principal=Principal(PrincipalKind.ANONYMOUS, tenant),
        method="tools/call",
        target=tool,
        arguments=arguments,
        client=Client(),
        revision=REVISION,
        era=Era.MODERN,
        delivery=Delivery.MODERN,
    )


def _compiled(folder: Path) -> dict[str, Compiled]:
    kind = _tools(folder)
    assert not kind.check()
    compiled = [kind.compile({"function": reference}) for reference, _ in kind.choices()]
    return {one.name: one for one in compiled}


async def _result(program: Program, call: Call) -> Mapping[str, Any]:
    outcome = await program.advance(call, EMPTY, Ports(threads=ToolThreads(2)))
    assert isinstance(outcome, Complete)
    assert not outcome.is_error
    return outcome.result


async def test_every_documented_function_loads_and_answers(tmp_path: Path) -> None:
    compiled = _compiled(tmp_path)
    assert set(compiled) == set(CALLS)
    for name, (arguments, word) in CALLS.items():
        result = await _result(compiled[name].program, _call(name, arguments))
        assert word in json.dumps(result)


async def test_every_documented_suggestion_is_made(tmp_path: Path) -> None:
    compiled = _compiled(tmp_path)
    for name, argument, typed, filled, values in SUGGESTIONS:
        asked = {
            "argument": {"name": argument, "value": typed},
            "context": {"arguments": filled},
        }
        completer = compiled[name].completer
        assert completer is not None
        result = await _result(completer, _call(name, asked))
        assert result["completion"]["values"] == values


@pytest.mark.parametrize("document", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/*.md")))
def test_every_link_between_documents_leads_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text()):
        assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150
