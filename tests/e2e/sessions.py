"""A client of the session-based revisions by hand: any of its requests goes to any process."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import httpx2

from tests.e2e.processes import Server

REVISION = "2025-11-25"
CAPABLE: Mapping[str, Any] = {"elicitation": {"form": {}}}

_ids = count(1)


class EndedError(AssertionError):
    """A stream has no further message, although one was expected."""

    def __init__(self) -> None:
        super().__init__("the stream has ended")


class Stream:
    """The events of a response, read as they come. `last_id` is where another goes on."""

    def __init__(self, response: httpx2.Response, last_id: str = "") -> None:
        assert response.headers["content-type"].startswith("text/event-stream"), response.headers
        self._lines = response.aiter_lines()
        self.last_id = last_id

    async def begun(self) -> str:
        async for line in self._lines:
            name, _, value = line.partition(": ")
            assert name != "data" or not value, line
            if name == "id":
                self.last_id = value
                return value
        raise EndedError

    async def is_over(self) -> bool:
        return not [line async for line in self._lines if line.startswith("data: {")]

    async def message(self) -> dict[str, Any]:
        async for line in self._lines:
            name, _, value = line.partition(": ")
            if name == "id":
                self.last_id = value
            if name == "data" and value:
                message: dict[str, Any] = json.loads(value)
                return message
        raise EndedError

    async def question(self) -> dict[str, Any]:
        message = await self.message()
        assert message.get("method") == "elicitation/create", message
        return message

    async def text(self) -> str:
        result = (await self.message())["result"]
        assert not result.get("isError"), result
        text: str = result["content"][0]["text"]
        return text


@dataclass
class Session:
    """What a client remembers."""

    http: httpx2.AsyncClient
    token: str
    id: str = ""

    @classmethod
    async def begun(cls, http: httpx2.AsyncClient, server: Server) -> "Session":
        session = cls(http, server.token)
        client = {"name": "e2e", "version": "1"}
        said = {"protocolVersion": REVISION, "capabilities": CAPABLE, "clientInfo": client}
        reply = await session.post(server, request("initialize", said))
        assert reply.status_code == 200, reply.text
        session.id = reply.headers["mcp-session-id"]
        initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await session.post(server, initialized)).status_code == 202
        return session

    async def post(self, server: Server, message: Mapping[str, Any]) -> httpx2.Response:
        return await self.http.post(server.url, json=message, headers=self.headers())

    async def answer(
        self, server: Server, question: Mapping[str, Any], result: Mapping[str, Any]
    ) -> None:
        message = {"jsonrpc": "2.0", "id": question["id"], "result": result}
        reply = await self.post(server, message)
        assert reply.status_code == 202, reply.text

    @asynccontextmanager
    async def calling(
        self, server: Server, tool: str, arguments: Mapping[str, Any]
    ) -> AsyncIterator[Stream]:
        message = request("tools/call", {"name": tool, "arguments": arguments})
        async with self.http.stream(
            "POST", server.url, json=message, headers=self.headers()
        ) as response:
            assert response.status_code == 200, await response.aread()
            yield Stream(response)

    @asynccontextmanager
    async def resuming(self, server: Server, last_id: str) -> AsyncIterator[Stream]:
        headers = {**self.headers(), "Last-Event-ID": last_id}
        async with self.http.stream("GET", server.url, headers=headers) as response:
            assert response.status_code == 200, await response.aread()
            yield Stream(response, last_id)

    def headers(self) -> dict[str, str]:
        known = {"Mcp-Session-Id": self.id, "MCP-Protocol-Version": REVISION} if self.id else {}
        return {
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {self.token}",
            **known,
        }


def request(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": next(_ids), "method": method, "params": params}
