"""The phases of a process's end."""

import asyncio
from collections.abc import Iterator

import pytest
from django.test import override_settings

from mcphost.observability import health
from mcphost.serving import drain, lifecycle
from tests.cast import Cast
from tests.mcp import begun, call, request
from tests.served import entries, probes


@pytest.fixture(autouse=True)
def _serving_again(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    callbacks = {phase: list(known) for phase, known in drain._callbacks.items()}
    monkeypatch.setattr(drain, "_callbacks", callbacks)
    yield
    drain.reset()


def test_each_phase_tells_those_who_wanted_to_know_once() -> None:
    told: list[str] = []
    drain.on_drain(lambda: told.append("drain"))
    drain.on_cut(lambda: told.append("cut"))
    drain.give_notice()
    assert (drain.leaving(), drain.draining(), told) == (True, False, [])
    drain.begin()
    drain.begin()
    assert (drain.draining(), told) == (True, ["drain"])
    drain.cut()
    drain.begin()
    assert told == ["drain", "cut"]


def test_one_that_raises_keeps_nobody_else_from_knowing(caplog: pytest.LogCaptureFixture) -> None:
    told: list[str] = []
    drain.on_drain(lambda: told.remove("nothing"))
    drain.on_drain(lambda: told.append("drain"))
    drain.begin()
    assert told == ["drain"]
    assert "something that wanted to know of the end of this process raised" in caplog.messages


@pytest.mark.django_db(transaction=True)
async def test_a_process_that_was_given_notice_is_not_ready(served: Cast) -> None:
    lifecycle.ensure_started()
    try:
        assert "drain" not in health.problems()
        drain.give_notice()
        assert health.problems()["drain"] == "the server is about to stop"
    finally:
        await asyncio.to_thread(lifecycle.stop)


@pytest.mark.django_db(transaction=True)
async def test_a_call_that_is_cut_is_told_so_and_recorded_so(served: Cast) -> None:
    calling = asyncio.create_task(call("acme", "hang", {}, served.owner.mcp_token))
    async with asyncio.timeout(20):
        await probes().running.wait()
        while not calling.done():
            drain.reset()
            drain.cut()  # a call is there to be cut once it is slow
            await asyncio.sleep(0.01)
    reply = await calling
    assert reply.status == 200
    assert reply.last["error"]["message"] == "The server stopped before this was over"
    assert probes().cancelled.is_set()
    await asyncio.to_thread(lifecycle.stop)
    last = (await entries("hang"))[-1]
    assert (last.outcome, last.reason) == ("cancelled", "The server stopped before this was over")


@pytest.mark.django_db(transaction=True)
@override_settings(MCPHOST_STREAM_AFTER_SECONDS=0.001)
async def test_a_server_that_tells_of_the_end_of_what_it_has_sent_is_no_failure(
    served: Cast,
) -> None:
    """uvicorn says `http.disconnect` as soon as the last byte is written, not only of a hang-up."""
    hang = request("tools/call", {"name": "hang", "arguments": {}})
    async with begun("acme", hang, served.owner.mcp_token) as exchange:
        await exchange.event()  # it has become a stream
        drain.cut()
        await exchange.done()
    assert b"The server stopped before this was over" in exchange.reply.raw
