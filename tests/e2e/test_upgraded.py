"""A call goes back and forth between processes with two versions of its tool: nothing is asked twice."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import asking
from tests.e2e.asking import Asker, at
from tests.e2e.nodes import Node, Service
from tests.e2e.processes import Server

HEAD = """
from pydantic import BaseModel
from mcphost.sdk import Context, tool

class Number(BaseModel):
    number: int

async def found(place: str) -> str:
    return f"{place} found"

"""
OLD = """
@tool(version="1")
async def interpret(ctx: Context, program: list[str]) -> str:
    \"\"\"Asks for a seat and a meal.\"\"\"
    seat = await ctx.elicit("seat", "Which seat?", Number)
    meal = await ctx.elicit("meal", "Which meal?", Number)
    return f"old: seat {seat.number}, meal {meal.number}"
"""
NEW = """
@tool(version="2")
async def interpret(ctx: Context, program: list[str]) -> str:
    \"\"\"Asks for a seat, for luggage, and in other words for a meal.\"\"\"
    where = await ctx.step("find", found, "place")
    seat = await ctx.elicit("seat", "Which seat?", Number)
    luggage = await ctx.elicit("luggage", "How many bags?", Number)
    meal = await ctx.elicit("meal", "What would you like to eat?", Number)
    return f"new: seat {seat.number}, bags {luggage.number}, meal {meal.number}, {where}"
"""
SAID = {"Which seat?": 1, "Which meal?": 2, "How many bags?": 3, "What would you like to eat?": 4}


@pytest.fixture
def service(machine: None, tmp_path: Path) -> Iterator[Service]:
    with asking.service(tmp_path) as two:
        yield two


def _with_code(service: Service, node: Node, tools: Path, source: str) -> Server:
    """A node that has been started again with this for the interpreter."""
    (tools / "interpreter.py").write_text(HEAD + source)
    node.stop()
    node.change(MCPHOST_TOOLS_PATH=str(tools))
    node.start()
    return at(service, node)


class Talk:
    """One call; every question that was asked in it, in its words."""

    def __init__(self) -> None:
        self._asker = Asker("interpret", {"program": []})
        self._state: str | None = None
        self._answers: dict[str, Any] = {}
        self.asked: list[str] = []

    def leg(self, server: Server) -> str:
        """What was asked or, in the end, told."""
        result = self._asker.leg(server, self._state, self._answers)
        if result["resultType"] == "complete":
            text: str = result["content"][0]["text"]
            return text
        self._state = result["requestState"]
        [(key, question)] = result["inputRequests"].items()
        words: str = question["params"]["message"]
        self.asked.append(words)
        self._answers = {key: {"action": "accept", "content": {"number": SAID[words]}}}
        return words


@pytest.mark.requirement("mrtr.any-node")
def test_a_call_may_go_back_and_forth_between_versions_and_answers_nothing_twice(
    service: Service, tmp_path: Path
) -> None:
    shutil.copytree(tmp_path / "tools", tmp_path / "newer")
    old = _with_code(service, service.first, tmp_path / "tools", OLD)
    new = _with_code(service, service.second, tmp_path / "newer", NEW)
    talk = Talk()
    assert talk.leg(old) == "Which seat?"
    assert talk.leg(new) == "How many bags?"
    assert talk.leg(old) == "Which meal?"
    assert talk.leg(new) == "What would you like to eat?"
    assert talk.leg(new) == "new: seat 1, bags 3, meal 4, place found"
    assert len(talk.asked) == len(set(talk.asked))
    there = Talk()
    assert [there.leg(server) for server in (new, old, old)] == [
        "Which seat?",
        "Which meal?",
        "old: seat 1, meal 2",
    ]
