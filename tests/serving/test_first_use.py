"""Modules that few requests need are loaded by the first of these requests, once, and not on the
event loop."""

import asyncio
import threading
from typing import Any

import pytest

from mcphost.protocol import params, shapes
from mcphost.protocol.errors import ProtocolError
from mcphost.protocol.shapes import WireShapes
from mcphost.serving import first_use
from tests.cast import Cast
from tests.mcp import ask

SAMPLING_RESULT = {"role": "assistant", "content": {"type": "text", "text": "red"}, "model": "any"}


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch) -> WireShapes:
    """The shapes as in a process that has just started."""
    fresh = WireShapes()
    for module in (shapes, params, first_use):
        monkeypatch.setattr(module, "wire_shapes", fresh)
    return fresh


async def test_the_models_are_loaded_once_in_a_thread_for_concurrent_requests(
    unloaded: WireShapes, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = []

    def load() -> Any:
        threads.append(threading.current_thread())
        return load_models()

    load_models = shapes._load
    monkeypatch.setattr(shapes, "_load", load)
    good = (first_use.with_shapes(params.check_responses, {"a": SAMPLING_RESULT}) for _ in range(3))
    assert await asyncio.gather(*good) == [None] * 3
    (loading,) = threads
    assert loading is not threading.current_thread()
    with pytest.raises(ProtocolError, match="must be the result of"):
        await first_use.with_shapes(params.check_responses, {"a": {"role": "nobody"}})


@pytest.mark.parametrize(
    ("method", "misfit"),
    [
        ("prompts/get", {"name": "greet", "arguments": {"who": 3}}),
        ("completion/complete", {"ref": {"type": "ref/tool"}, "argument": {}}),
        ("subscriptions/listen", {"notifications": {"toolsListChanged": 3}}),
    ],
)
async def test_the_first_request_that_needs_the_models_is_answered_like_any_other(
    offered: Cast, unloaded: WireShapes, method: str, misfit: dict[str, Any]
) -> None:
    token = offered.member.mcp_token
    first = await ask("acme", method, misfit, token)
    assert unloaded.loaded
    assert first.status == 400
    assert (await ask("acme", method, misfit, token)).error == first.error
