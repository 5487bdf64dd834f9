"""The ASGI lifespan: start before the first request, stop after the last."""

from collections.abc import Mapping
from typing import Any

from mcphost.serving.process.lifecycle import ServerProcess
from mcphost.transport.request import Receive
from mcphost.transport.response import Send


class Lifespan:
    """Starts and stops a process as the server says. Daphne does not: there the first request starts
    it."""

    def __init__(self, process: ServerProcess) -> None:
        self._process = process

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        while True:
            event = await receive()
            if event["type"] == "lifespan.startup":
                self._process.start()
                await send({"type": "lifespan.startup.complete"})
            else:
                await self._process.stop()
                await send({"type": "lifespan.shutdown.complete"})
                return
