"""Graceful shutdown: accepted requests are answered, and nothing is dropped."""

import asyncio
import logging
import signal

import pytest

from mcphost.serving import shutdown
from mcphost.transport.server import graceful_shutdown
from mcphost.transport.server.graceful_shutdown import ShutdownTimes
from tests.transport.uvicorn_server import GET, LAST, PATIENCE, Running, answer, end, running

WAIT = GET.replace(b"/ ", b"/wait ")
STREAM = GET.replace(b"/ ", b"/stream ")
LONG = ShutdownTimes(notice_seconds=600, drain_seconds=600)


async def _draining() -> None:
    async with asyncio.timeout(PATIENCE):
        while not shutdown.draining():  # noqa: ASYNC110 - what begins it is the server's own look
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
async def test_a_termination_signal_shuts_the_server_down_gracefully(
    ending: signal.Signals,
) -> None:
    async with running() as served:
        reader, _ = await served.line(WAIT)
        await served.app.arrived.wait()
        signal.raise_signal(ending)
        assert served.server.should_exit
        await _draining()
        served.app.release.set()
        assert b"200 OK" in await answer(reader)
    # uvicorn would have raised the signal again by now, and ended this process.
    assert served.app.ended == ["lifespan.startup", "lifespan.shutdown"]
    assert not shutdown.leaving(), "a server that starts afterwards is not leaving"


async def test_after_sigterm_requests_are_served_for_a_while_and_connections_are_closed() -> None:
    async with running(shutdown_times=LONG) as served:
        known, writer = await served.line(GET)
        assert b"connection: close" not in (await answer(known)).lower()
        signal.raise_signal(signal.SIGTERM)
        assert shutdown.leaving()
        while b"connection: close" not in (await answer((await served.line(GET))[0])).lower():
            assert not shutdown.draining()
        writer.write(GET)
        assert b"connection: close" in (await answer(known)).lower()
        assert await end(known) == b""
        assert not shutdown.draining()
        signal.raise_signal(signal.SIGINT)
    assert served.app.ended == ["lifespan.startup", "lifespan.shutdown"]


async def test_a_response_that_began_before_the_notice_leaves_its_connection_open() -> None:
    async with running(shutdown_times=LONG) as served:
        reader, writer = await served.line(STREAM)
        async with asyncio.timeout(PATIENCE):
            head = await reader.readuntil(b"begun\r\n")
        assert b"connection: close" not in head.lower()
        signal.raise_signal(signal.SIGTERM)
        while b"connection: close" not in (await answer((await served.line(GET))[0])).lower():
            assert not shutdown.draining()
        served.app.release.set()
        async with asyncio.timeout(PATIENCE):
            await reader.readuntil(LAST)
        writer.write(GET)
        assert b"connection: close" in (await answer(reader)).lower()
        assert await end(reader) == b""
        signal.raise_signal(signal.SIGINT)


async def test_the_drain_serves_connections_that_were_used_a_moment_ago(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(graceful_shutdown, "QUIET_SECONDS", 600)
    async with running(shutdown_times=LONG) as served:
        reader, writer = await served.line(GET)
        await answer(reader)
        signal.raise_signal(signal.SIGINT)
        await _refused(served)
        writer.write(GET)
        assert b"connection: close" in (await answer(reader)).lower()
        assert await end(reader) == b""


async def test_the_drain_serves_a_connection_that_was_idle_for_long_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A proxy uses it as soon as those that it used before are closed."""
    monkeypatch.setattr(graceful_shutdown, "QUIET_SECONDS", 600)
    async with running(shutdown_times=LONG) as served:
        reader, writer = await served.line(GET)
        await answer(reader)
        (connection,) = served.server.server_state.connections
        connection.timeout_keep_alive += 1200  # as if the answer had been sent so much earlier
        signal.raise_signal(signal.SIGINT)
        await _refused(served)
        writer.write(GET)
        assert b"connection: close" in (await answer(reader)).lower()
        assert await end(reader) == b""


async def test_the_drain_closes_connections_that_stay_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graceful_shutdown, "QUIET_SECONDS", 0.05)
    async with running(shutdown_times=LONG) as served:
        reader, _ = await served.line(GET)
        await answer(reader)
        signal.raise_signal(signal.SIGINT)
        assert await end(reader) == b""


async def _refused(served: Running) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", served.port)
            except ConnectionRefusedError:
                return
            writer.close()
            await writer.wait_closed()


@pytest.mark.parametrize("first", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
async def test_a_second_signal_cuts_requests_but_the_application_may_still_shut_down(
    first: signal.Signals, second: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graceful_shutdown, "CUT_SECONDS", 0.05)
    monkeypatch.setattr(graceful_shutdown, "ECHO_SECONDS", 0)
    async with running(shutdown_times=LONG) as served:
        reader, _ = await served.line(WAIT)
        await served.app.arrived.wait()
        signal.raise_signal(first)
        signal.raise_signal(second)
        assert await _hung_up(reader)
    assert served.app.ended == ["lifespan.startup", "lifespan.shutdown"]


async def test_a_sigterm_delivered_twice_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graceful_shutdown, "ECHO_SECONDS", 600)
    async with running() as served:
        reader, _ = await served.line(WAIT)
        await served.app.arrived.wait()
        for _ in range(2):
            signal.raise_signal(signal.SIGTERM)
        await _draining()
        served.app.release.set()
        assert b"200 OK" in await answer(reader)


async def _hung_up(reader: asyncio.StreamReader) -> bool:
    try:
        return await end(reader) == b""
    except ConnectionError:
        return True


async def test_a_request_that_does_not_end_in_time_is_cancelled(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(graceful_shutdown, "CUT_SECONDS", 0.05)
    caplog.set_level(logging.WARNING, "mcphost.transport.server.graceful_shutdown")
    async with running(shutdown_times=ShutdownTimes(drain_seconds=0.05)) as served:
        reader, _ = await served.line(WAIT)
        await served.app.arrived.wait()
        signal.raise_signal(signal.SIGTERM)
        assert await _hung_up(reader)
    assert "drain ended: cancelling unfinished requests: 1" in caplog.messages
    assert served.app.ended == ["lifespan.startup", "lifespan.shutdown"]


@pytest.mark.parametrize("before", [b"", GET])
async def test_a_partially_received_request_is_waited_for(before: bytes) -> None:
    async with running(shutdown_times=LONG) as served:
        reader, writer = await served.line(before)
        if before:
            await answer(reader)
        writer.write(WAIT[:20])
        await _has_begun(served)
        signal.raise_signal(signal.SIGINT)
        await _draining()
        writer.write(WAIT[20:])
        async with asyncio.timeout(PATIENCE):
            await served.app.arrived.wait()
        served.app.release.set()
        assert b"connection: close" in (await answer(reader)).lower()


async def _has_begun(served: Running) -> None:
    async with asyncio.timeout(PATIENCE):
        # There is no event for bytes that have arrived.
        while not any(each.busy for each in served.server._connections()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_connections_accepted_only_by_the_kernel_are_still_served() -> None:
    async with running(shutdown_times=LONG) as served:
        await answer((await served.line(GET))[0])
        (server,) = served.server.servers
        (listener,) = server.sockets
        asyncio.get_running_loop().remove_reader(listener.fileno())  # so uvicorn does not accept
        lines = [await served.line(GET) for _ in range(20)]
        signal.raise_signal(signal.SIGINT)
        for reader, _ in lines:
            assert b"connection: close" in (await answer(reader)).lower()
