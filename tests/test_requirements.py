"""Tests that every requirement has a test, and that every id in a mark is a requirement."""

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path

from tests.requirements import (
    _ENTRIES,
    _OF_SESSION_TASKS,
    _OF_SESSIONS,
    _OF_TASKS,
    REQUIREMENTS,
)

TESTS = Path(__file__).resolve().parent
MARK = re.compile(r"pytest\.mark\.requirement\(([^()]*)\)")
"""Found in the text: parsing all tests takes a hundred times as long."""


@cache
def marks() -> dict[str, list[str]]:
    """Return where each id is marked, from the source, without importing or collecting tests."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text()
        for mark in MARK.finditer(text):
            line = text.count("\n", 0, mark.start()) + 1
            for id in ast.literal_eval(f"[{mark[1]}]"):
                found[id].append(f"{path.relative_to(TESTS)}:{line}")
    return found


def test_every_requirement_has_a_test():
    assert sorted(REQUIREMENTS.keys() - marks().keys()) == []


def test_every_requirement_mark_names_a_requirement():
    unknown = {id: places for id, places in marks().items() if id not in REQUIREMENTS}
    assert unknown == {}


def test_every_requirement_is_declared_once_with_its_section():
    assert len(REQUIREMENTS) == sum(
        map(len, (_ENTRIES, _OF_SESSIONS, _OF_SESSION_TASKS, _OF_TASKS))
    )
    for requirement in REQUIREMENTS.values():
        assert re.fullmatch(r"[a-z-]+(\.[a-z0-9-]+)+", requirement.id)
        assert re.fullmatch(r"[a-z/-]+#[a-z0-9-]+", requirement.section), requirement.id
        assert requirement.link.startswith(f"{requirement.site}/{requirement.revision}/")
