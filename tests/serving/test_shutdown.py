"""The phases of a process's shutdown."""

import asyncio
from collections.abc import Iterator

import pytest

from mcphost.observability import health
from mcphost.routing import process
from mcphost.serving import shutdown
from tests.cast import Cast
from tests.mcp import call
from tests.served import entries, probes


@pytest.fixture(autouse=True)
def _serving_again(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    callbacks = {phase: list(known) for phase, known in shutdown._callbacks.items()}
    monkeypatch.setattr(shutdown, "_callbacks", callbacks)
    yield
    shutdown.reset()


def test_each_shutdown_phase_calls_its_callbacks_once() -> None:
    told: list[str] = []
    shutdown.on_drain(lambda: told.append("drain"))
    shutdown.on_cut(lambda: told.append("cut"))
    shutdown.give_notice()
    assert (shutdown.leaving(), shutdown.draining(), told) == (True, False, [])
    shutdown.begin()
    shutdown.begin()
    assert (shutdown.draining(), told) == (True, ["drain"])
    shutdown.cut()
    shutdown.begin()
    assert told == ["drain", "cut"]


@pytest.mark.django_db(transaction=True)
async def test_a_process_after_notice_is_not_ready(served: Cast) -> None:
    process.start()
    try:
        assert "drain" not in health.problems()
        shutdown.give_notice()
        assert health.problems()["drain"] == "the server is about to stop"
    finally:
        await process.stop()


@pytest.mark.django_db(transaction=True)
async def test_a_call_cut_by_the_shutdown_returns_and_records_the_reason(served: Cast) -> None:
    calling = asyncio.create_task(call("acme", "hang", {}, served.owner.mcp_token))
    async with asyncio.timeout(20):
        await probes().running.wait()
        while not calling.done():
            shutdown.reset()
            shutdown.cut()  # the cut reaches a call once it is registered as slow
            await asyncio.sleep(0.01)
    reply = await calling
    assert reply.status == 200
    assert reply.last["error"]["message"] == "The server shut down before the call was complete"
    assert probes().cancelled.is_set()
    await process.stop()
    last = (await entries("hang"))[-1]
    assert (last.outcome, last.reason) == (
        "cancelled",
        "The server shut down before the call was complete",
    )
