"""The ASGI lifespan: start before the first request, stop after the last."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mcphost.serving.execution.outgoing import sender
from mcphost.serving.process import lifecycle
from mcphost.serving.tasks.job_worker import job_worker
from mcphost.transport.request import Receive
from mcphost.transport.response import Send


async def lifespan(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """Implement the lifespan protocol. Daphne has none: there the first request does the start."""
    while True:
        event = await receive()
        if event["type"] == "lifespan.startup":
            lifecycle.ensure_started()
            await send({"type": "lifespan.startup.complete"})
        else:
            await job_worker.ended()
            await sender.close()
            # In a separate thread: tools that never return may block all of asyncio's threads.
            with ThreadPoolExecutor(1, thread_name_prefix="mcphost-stop") as pool:
                await asyncio.get_running_loop().run_in_executor(pool, lifecycle.stop)
            await send({"type": "lifespan.shutdown.complete"})
            return
