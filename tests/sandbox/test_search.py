"""JMESPath in a worker: values, mistakes, and expressions that take too much."""

import asyncio

import pytest

from mcphost.sandbox.frames import MAX_FRAME
from mcphost.sandbox.pool import Sandbox, SearchFailedError


async def test_an_expression_returns_its_value(sandbox: Sandbox):
    data = {"items": [{"id": 1}, {"id": 2}]}
    assert await sandbox.search("acme", "items[*].id", data) == [1, 2]
    assert await sandbox.search("acme", "nothing", data) is None


@pytest.mark.parametrize(
    "expression",
    [
        "items[",
        "nofunction(@)",
        "",
    ],
)
async def test_an_invalid_expression_is_refused(sandbox: Sandbox, expression: str):
    with pytest.raises(SearchFailedError):
        await sandbox.search("acme", expression, {"items": [1]})
    assert await sandbox.search("acme", "a", {"a": 1}) == 1


GROWS = "|".join(["[@,@,@,@,@,@,@,@]"] * 9)
BOMBS = {
    "many values": GROWS,
    "a long text": "|".join(["join('',[@,@,@,@,@,@,@,@,@,@])"] * 11),
    "nested deep": "[" * 20_000 + "]" * 20_000,
    "flattened": GROWS + "|[]" * 8 + "|length(@)",
}


@pytest.mark.parametrize("bomb", BOMBS)
async def test_an_expression_that_needs_too_many_resources_is_stopped(sandbox: Sandbox, bomb: str):
    with pytest.raises(SearchFailedError):
        found = await sandbox.search("acme", BOMBS[bomb], "xxxxxxxxxx")
        assert found is None, "it is small after all"
        raise SearchFailedError("it was not too much")
    assert await sandbox.search("acme", "a", {"a": 1}) == 1


async def test_data_that_is_too_large_is_refused(sandbox: Sandbox):
    with pytest.raises(SearchFailedError, match="too large"):
        await sandbox.search("acme", "@", "x" * MAX_FRAME)


async def test_an_expensive_expression_delays_no_other_search(sandbox: Sandbox):
    await sandbox.search("globex", "a", {})  # its worker is started
    bomb = asyncio.create_task(sandbox.search("acme", GROWS, [1]))
    others = [sandbox.search("globex", "a", {"a": number}) for number in range(20)]
    assert await asyncio.gather(*others) == list(range(20))
    assert not bomb.done()  # twenty others were faster than its limit of one second
    with pytest.raises(SearchFailedError):
        await bomb
