"""The background work of a serving process."""

import logging
import threading

import pytest
from django.test import override_settings

from mcphost.observability import counters, health
from mcphost.routing import process
from mcphost.serving.process.housekeeping import Housekeeping
from mcphost.serving.process.lifecycle import ServerProcess
from mcphost.vault.errors import MasterKeyMismatchError
from tests.cast import Cast
from tests.mcp import call

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_tool_that_blocks_the_event_loop_is_named_in_the_log(
    served: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "mcphost.observability.loop_watch")
    assert (await call("acme", "stall", {}, served.owner.mcp_token)).text == "stalled"
    tools = {getattr(record, "tool", None) for record in caplog.records}
    assert "probe.stall" in tools


async def test_a_failed_start_is_retried_by_the_next_request(
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


def test_a_wrong_master_key_prevents_the_start(served: Cast) -> None:
    with (
        override_settings(MCPHOST_MASTER_KEY=lambda: b"x" * 32),
        pytest.raises(MasterKeyMismatchError),
    ):
        ServerProcess().prepare()


@pytest.mark.parametrize(
    ("in_server", "role", "writes"),
    [(True, "server", True), (False, "server", False), (False, "worker", True)],
)
async def test_summaries_are_written_only_where_the_setting_says(
    transactional_db: None, in_server: bool, role: str, writes: bool
) -> None:
    process = ServerProcess(role=role)
    with override_settings(MCPHOST_SUMMARIES_IN_SERVER=in_server):
        process.start()
    names = {thread.name for thread in threading.enumerate()}
    assert ("mcphost-summaries" in names) is writes
    await process.stop()
    assert "mcphost-summaries" not in {thread.name for thread in threading.enumerate()}


async def test_stopping_removes_the_probes_and_gauges_of_the_start(transactional_db: None) -> None:
    process = ServerProcess()
    process.start()
    assert {"records", "feed", "database", "drain"} <= set(health.registry.names())
    assert counters.metrics.snapshot()["loop_lag_limit_seconds"] > 0
    assert "drain" not in health.problems()
    await process.stop()
    assert not {"records", "feed", "database", "drain"} & set(health.registry.names())
    assert counters.metrics.snapshot()["loop_lag_limit_seconds"] == 0
