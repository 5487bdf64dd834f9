"""The examples in the documents run."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from mcphost.kinds.python.kind import PythonKind
from mcphost.protocol.eras import REVISION, Era
from mcphost.runtime.call import Call, Client, Delivery, Principal, PrincipalKind
from mcphost.runtime.journal import EMPTY
from mcphost.runtime.outcomes import Complete
from mcphost.runtime.ports import Ports
from mcphost.runtime.threads import ToolThreads

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)

# What each documented tool is called with, and a word that its answer must hold.
CALLS = {
    "greet_politely": ({"name": "Ada"}, "Good day, Ada."),
    "shout": ({"text": "hello"}, "HELLO"),
    "book_table": ({"guests": 3}, "A table for 3, today."),
    "forecast": ({"place": "Oslo"}, "21.5"),
    "withdraw": ({"amount": 5}, "5 it is."),
    "add_note": ({"text": "a"}, "Added"),
    "walk": ({"steps": 2}, "There."),
    "compress": ({"text": "four"}, "4"),
    "review": ({"repository": "shop", "branch": "main"}, "Review main of shop. Be kind."),
    "opening_hours": ({}, "9 to 18"),
    "order": ({"number": "7"}, '"order":"7"'),
}


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


def _text(result: Mapping[str, Any]) -> str:
    """The first text of a tool's, prompt's or resource's result."""
    match result:
        case {"messages": [{"content": {"text": str(text)}}, *_]}:
            return text
        case {"contents": [{"text": str(text)}, *_]} | {"content": [{"text": str(text)}, *_]}:
            return text
    raise AssertionError(result)


async def test_every_documented_tool_loads_and_answers(tmp_path: Path) -> None:
    kind = _tools(tmp_path)
    assert not kind.check()
    compiled = [kind.compile({"function": reference}) for reference, _ in kind.choices()]
    assert {tool.name for tool in compiled} == set(CALLS)
    for tool in compiled:
        arguments, word = CALLS[tool.name]
        ports = Ports(threads=ToolThreads(2))
        outcome = await tool.program.advance(_call(tool.name, arguments), EMPTY, ports)
        assert isinstance(outcome, Complete)
        assert word in _text(outcome.result)


@pytest.mark.parametrize("document", sorted(ROOT.glob("*.md")) + sorted(ROOT.glob("docs/*.md")))
def test_every_link_between_documents_leads_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text()):
        assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150
