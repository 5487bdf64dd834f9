"""Health and metrics of a process that serves no MCP requests."""

import asyncio
import signal
import socket
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from mcphost.transport.server.operations_port import HOST, PATHS, OperationsPort

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE = 20
TOKEN = "a-token-of-enough-letters"


async def get(port: int, path: str, token: str = "", host: str = "localhost") -> tuple[int, str]:
    """Status and body of a request on a connection of its own."""
    reader, writer = await asyncio.open_connection(HOST, port)
    fields = f"Authorization: Bearer {token}\r\n" if token else ""
    request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{fields}\r\n"
    writer.write(request.encode())
    async with asyncio.timeout(PATIENCE):
        head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    return int(head.split()[1]), body


async def test_the_operations_port_serves_only_health_and_metrics(settings: Settings) -> None:
    settings.MCPHOST_METRICS_TOKEN = TOKEN
    listener = socket.create_server((HOST, 0))
    port = listener.getsockname()[1]
    before = signal.getsignal(signal.SIGTERM)
    async with OperationsPort(listener):
        assert await get(port, "/healthz") == (200, '{"status":"ok"}')
        status, body = await get(port, "/readyz")
        assert (status, '"problems":{' in body) in ((200, True), (503, True))
        for path in PATHS:
            assert (await get(port, path, TOKEN, "127.0.0.1"))[0] in (200, 503)
            assert (await get(port, path, TOKEN, "attacker.example"))[0] == 403
        status, body = await get(port, "/metrics", TOKEN)
        assert (status, "mcphost_task_rounds_running" in body) == (200, True)
        assert (await get(port, "/metrics"))[0] == 401
        status, body = await get(port, "/status.json", TOKEN)
        assert (status, '"lines":[{"name":"processes"' in body) in ((200, True), (503, True))
        assert (await get(port, "/status.json"))[0] == 401
        assert (await get(port, "/t/acme/mcp"))[0] == 404
        assert signal.getsignal(signal.SIGTERM) == before
    with pytest.raises(OSError, match=r".*"):
        await asyncio.open_connection(HOST, port)


def test_an_occupied_metrics_port_is_refused_before_anything_starts(settings: Settings) -> None:
    settings.MCPHOST_ALONE = False
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CommandError, match=f"Could not listen on {HOST}:{port}"):
            call_command("worker", "--metrics-port", str(port), stdout=StringIO())
