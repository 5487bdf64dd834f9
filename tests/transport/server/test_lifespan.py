"""The ASGI lifespan."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from mcphost.audit.writer.writer import writer
from mcphost.routing import application
from mcphost.serving.process.lifecycle import ServerProcess
from mcphost.transport.server.lifespan import Lifespan

pytestmark = pytest.mark.django_db(transaction=True)

SCOPE = {"type": "lifespan", "asgi": {"version": "3.0", "spec_version": "2.0"}}


class Host:
    """The server's side of the protocol."""

    def __init__(self) -> None:
        self.told: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.heard: asyncio.Queue[Any] = asyncio.Queue()

    async def say(self, event: str) -> str:
        await self.told.put({"type": event})
        async with asyncio.timeout(20):
            answer: str = (await self.heard.get())["type"]
            return answer


@pytest.mark.parametrize("app", [Lifespan(ServerProcess()), application])
async def test_records_can_be_written_from_startup_to_shutdown(app: Any) -> None:
    host = Host()
    following = asyncio.create_task(app(SCOPE, host.told.get, host.heard.put))
    assert writer.refuse_new()
    assert await host.say("lifespan.startup") == "lifespan.startup.complete"
    assert not writer.refuse_new()
    assert await host.say("lifespan.shutdown") == "lifespan.shutdown.complete"
    assert writer.refuse_new()
    await following


def test_tools_that_block_all_asyncio_threads_do_not_prevent_shutdown() -> None:
    asyncio.run(_ends_while_all_threads_are_held())


async def _ends_while_all_threads_are_held() -> None:
    release = threading.Event()
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    held = asyncio.create_task(asyncio.to_thread(release.wait))
    await asyncio.sleep(0)
    host = Host()
    following = asyncio.create_task(Lifespan(ServerProcess())(SCOPE, host.told.get, host.heard.put))
    try:
        assert await host.say("lifespan.startup") == "lifespan.startup.complete"
        assert await host.say("lifespan.shutdown") == "lifespan.shutdown.complete"
        await following
    finally:
        release.set()
        await held
