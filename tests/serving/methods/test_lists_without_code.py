"""All processes return the same lists, whichever of them has the code."""

import pytest

from mcphost.kinds.python.kind import python_kind
from tests.cast import Cast
from tests.mcp import ask
from tests.rounds.conftest import asking
from tests.serving.processes_without_code import lacking

__all__ = ["asking"]

pytestmark = pytest.mark.django_db(transaction=True)

LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")


async def _lists(token: str) -> list[bytes]:
    return [(await ask("acme", method, token=token)).raw for method in LISTS]


async def test_lists_are_equal_on_processes_with_and_without_the_code(asking: Cast) -> None:
    token = asking.owner.mcp_token
    there = await _lists(token)
    assert all(b'"name":' in raw for raw in there[:2])
    async with lacking(*python_kind.functions()):
        assert await _lists(token) == there
    assert await _lists(token) == there
