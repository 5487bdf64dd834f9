"""What runs in a serving process besides its requests."""

import asyncio
import logging
import threading

import pytest
from django.test import override_settings

from mcphost.audit.ports import payload_cipher, set_payload_cipher
from mcphost.identity.last_use import last_use
from mcphost.identity.models import Token
from mcphost.observability import counters
from mcphost.routing import process
from mcphost.serving.database import in_database
from mcphost.serving.process import lifecycle
from mcphost.serving.process.housekeeping import Housekeeping
from mcphost.serving.process.lifecycle import ServerProcess
from mcphost.vault.errors import MasterKeyMismatch
from tests.audit.ciphers import GateCipher
from tests.cast import Cast
from tests.mcp import call, request, send

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_tool_that_blocks_the_event_loop_is_named_in_the_log(
    served: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "mcphost.observability.loop_watch")
    assert (await call("acme", "stall", {}, served.owner.mcp_token)).text == "stalled"
    tools = {getattr(record, "tool", None) for record in caplog.records}
    assert "probe.stall" in tools


async def test_the_last_use_of_a_token_is_written_at_the_latest_when_the_process_stops(
    served: Cast,
) -> None:
    token = served.owner.mcp_token
    assert (await send("acme", request("tools/list"), token)).status == 200
    await process.stop()
    used = Token.objects.filter(pk=token.split("_")[1]).values_list("last_used_at", flat=True)
    assert await in_database(lambda: list(used)) != [None]
    last_use.forget_all()


async def test_it_starts_again_after_it_was_stopped(served: Cast) -> None:
    for _ in range(2):
        assert (await call("acme", "echo", {"text": "a"}, served.owner.mcp_token)).text == "a"
        await process.stop()


async def test_a_start_that_fails_is_tried_again_by_the_next_request(
    served: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: Housekeeping) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(Housekeeping, "start", fails)
        with pytest.raises(RuntimeError, match="new thread"):
            process.start()
    assert (await call("acme", "echo", {"text": "a"}, served.owner.mcp_token)).text == "a"
    assert "mcphost-housekeeping" in {thread.name for thread in threading.enumerate()}


def test_a_wrong_master_key_is_a_refusal_to_start(served: Cast) -> None:
    with override_settings(MCPHOST_MASTER_KEY=lambda: b"x" * 32), pytest.raises(MasterKeyMismatch):
        ServerProcess().prepare()


async def test_what_could_not_be_written_by_the_end_is_said(
    served: Cast, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(lifecycle, "STOP_SECONDS", 0.05)
    process.start()
    gate, before = GateCipher(), payload_cipher()
    set_payload_cipher(gate)
    try:
        waiting = asyncio.create_task(call("acme", "echo", {"text": "a"}, served.owner.mcp_token))
        await asyncio.to_thread(gate.await_arrival)
        await process.stop()
        assert "records were left unwritten at the end" in caplog.messages
    finally:
        gate.open_gate()
        set_payload_cipher(before)
    await waiting


async def test_the_process_says_how_many_threads_it_has_lost_and_records_it_holds(
    served: Cast,
) -> None:
    process.start()
    numbers = counters.snapshot()
    assert (numbers["threads_lost"], numbers["records_waiting"]) == (0, 0)


@pytest.mark.parametrize(
    ("in_server", "role", "writes"),
    [(True, "server", True), (False, "server", False), (False, "worker", True)],
)
async def test_summaries_are_written_where_the_setting_says(
    transactional_db: None, in_server: bool, role: str, writes: bool
) -> None:
    process = ServerProcess(role=role)
    with override_settings(MCPHOST_SUMMARIES_IN_SERVER=in_server):
        process.start()
    names = {thread.name for thread in threading.enumerate()}
    assert ("mcphost-summaries" in names) is writes
    await process.stop()
    assert "mcphost-summaries" not in {thread.name for thread in threading.enumerate()}
