"""Health, metrics and status of a process that serves nothing else, on a port of this machine."""

import asyncio
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from uvicorn import Config, Server

from mcphost.transport.operations import (
    Application,
    healthz,
    metrics,
    not_found,
    readyz_in_detail,
    status,
)
from mcphost.transport.request import Receive
from mcphost.transport.response import Send
from mcphost.transport.server.uvicorn import ClientTimeouts, protocol_with

HOST: Final = "127.0.0.1"
PATHS: Final[Mapping[str, Application]] = {
    "/healthz": healthz,
    "/readyz": readyz_in_detail,
    "/metrics": metrics,
    "/status.json": status,
}


class OperationsPort:
    """Serves `PATHS` while it is entered, on the running loop. `listener` is closed at the end."""

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener

    async def __aenter__(self) -> None:
        config = Config(
            _application,
            http=protocol_with(ClientTimeouts()),
            ws="none",
            lifespan="off",
            access_log=False,
            log_config=None,
            server_header=False,
        )
        self._server = _BesideOthers(config)
        self._serving = asyncio.create_task(self._server.serve([self._listener]))

    async def __aexit__(self, *_: object) -> None:
        self._server.should_exit = self._server.force_exit = True
        await asyncio.wait([self._serving])


class _BesideOthers(Server):
    """A server that leaves the process's signals alone."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _application(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    await PATHS.get(scope["path"], not_found)(scope, receive, send)
