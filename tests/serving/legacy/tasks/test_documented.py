"""The requests and messages of docs/tasks.md for clients of 2025-11-25, as they are written there."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.cast import Cast
from tests.legacy import Posted
from tests.serving.legacy.tasks.client import TaskClient
from tests.serving.tasks.task_client import PATIENCE, did
from tests.serving.tasks.test_documented import BLOCK, ID, OF_SESSIONS, as_documented

pytestmark = pytest.mark.django_db(transaction=True)


class Reader:
    """Does what the page says, block by block."""

    def __init__(self, client: TaskClient, token: str, open_streams: AsyncExitStack) -> None:
        self._session = client.session
        self._open = open_streams
        self._real = {"Bearer TOKEN": f"Bearer {token}", "SESSION": str(client.session.id)}
        self._streams: dict[str, Posted] = {}
        self._reply: Mapping[str, Any] = {}
        self.methods: list[str] = []

    def _as_sent(self, block: str) -> str:
        for written, real in self._real.items():
            block = block.replace(written, real)
        return block

    async def request(self, block: str) -> None:
        """Send a request of the page; its response is read where the page shows it."""
        head, _, body = self._as_sent(block).partition("\n\n")
        first, *lines = head.splitlines()
        verb, path = first.split(" ")
        assert path == self._session.path
        headers = dict(line.lower().split(": ", 1) for line in lines if "Session" not in line)
        headers["authorization"] = self._session.headers()["authorization"]
        sent = {name.replace("-", "_"): value for name, value in headers.items()}
        method = json.loads(body).get("method", "answer") if body else verb
        self.methods.append(method)
        if method in ("GET", "tasks/result"):
            content = json.loads(body) if body else b""
            posted = await self._open.enter_async_context(
                self._session.begun(content, verb, **sent)
            )
            await posted.event()
            self._streams[method] = posted
            return
        reply = await self._session.send(json.loads(body), verb, **sent)
        if method == "answer":
            assert (reply.status, reply.raw) == (202, b"")
        else:
            self._reply = reply.last

    async def message(self, block: str) -> None:
        """Compare a message of the page with the one that came."""
        told = json.loads(block)
        if told.get("method", "").startswith("notifications/"):
            found = await self._streams["GET"].message()
        elif "method" in told or told["id"] == 3:
            found = await self._streams["tasks/result"].message()
        else:
            found = self._reply
        if "task" in found.get("result", {}):
            self._real[ID] = found["result"]["task"]["taskId"]
        if "method" in found and "id" in found:
            self._real["QUESTION"] = found["id"]
        assert as_documented(json.loads(self._as_sent(block)), found), found


async def test_the_documented_requests_of_a_session_get_the_documented_messages(
    tasks: Cast, client: TaskClient
) -> None:
    async with AsyncExitStack() as streams, asyncio.timeout(PATIENCE):
        reader = Reader(client, tasks.owner.mcp_token, streams)
        for language, block in BLOCK.findall(OF_SESSIONS):
            await (reader.request(block) if language == "http" else reader.message(block))
    assert reader.methods == [
        "GET",
        "tools/call",
        "tasks/get",
        "tasks/result",
        "answer",
        "tasks/list",
        "tasks/cancel",
    ]
    assert did() == ["the door red"]
