"""Many who follow tasks, in one process: `python -m bench.followers URL`, with the token in BENCH_TOKEN.

Raw connections that stay open, so that what is measured is the server. It reads lines of JSON, and
writes one for each:

- `{"tool", "seconds", "clients", "pause"}`: for so long each client calls the tool, polls until the task
  has ended, with a pause in seconds between two polls, and begins again; a question is answered. Written
  are how many `tasks` were right and how many `polls` they took, the `seconds` that all took, the `cpu`
  seconds of this process, and the milliseconds of each task from its acknowledged answer to its result
  seen (`answered`);
- `{"wait": count}`: call `ask_later` so often, and see that each asks. Written are the `seconds`.
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import uvloop

SIDE_BY_SIDE = 32
PATIENCE = 170.0
REVISION = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
META = {
    f"{PREFIX}protocolVersion": REVISION,
    f"{PREFIX}clientInfo": {"name": "bench", "version": "1"},
    f"{PREFIX}clientCapabilities": {
        "elicitation": {"form": {}},
        "extensions": {f"{PREFIX}tasks": {}},
    },
}
SURE = {"action": "accept", "content": {"sure": True}}
ASKS = "ask_later"


class Line:
    """A connection that requests use one after the other."""

    def __init__(
        self, url: str, token: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._address, self._token = urlsplit(url), token
        self._reader, self._writer = reader, writer

    async def send(self, method: str, **params: Any) -> Mapping[str, Any]:
        """The result of a request."""
        message = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": method,
            "params": {**params, "_meta": META},
        }
        body = json.dumps(message).encode()
        lines = (
            f"POST {self._address.path} HTTP/1.1",
            f"Host: {self._address.netloc}",
            f"Authorization: Bearer {self._token}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"MCP-Protocol-Version: {REVISION}",
            f"Mcp-Method: {method}",
            f"Mcp-Name: {params.get('taskId') or params['name']}",
            f"Content-Length: {len(body)}",
        )
        self._writer.write("\r\n".join([*lines, "", ""]).encode() + body)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()
        assert "content-length: " in head, head
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        answer = json.loads(await self._reader.readexactly(length))
        result: Mapping[str, Any] = answer["result"]
        return result


@dataclass
class Counts:
    """What the clients have seen since they were told to begin. Milliseconds."""

    tasks: int = 0
    polls: int = 0
    answered: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Follower:
    """Follows tasks over one connection, with a pause in seconds between two polls."""

    line: Line
    counts: Counts
    pause: float

    async def task(self, tool: str, text: str) -> None:
        """One task from its call to its result, which must be its own."""
        task = await self.call(tool, text)
        answered = await self._answer(task) if tool == ASKS else None
        ended = await self.until(task, "completed")
        if answered is not None:
            self.counts.answered.append((time.perf_counter() - answered) * 1000)
        assert [block["text"] for block in ended["result"]["content"]] == [text], ended
        self.counts.tasks += 1

    async def call(self, tool: str, text: str) -> str:
        """The id of the task that a call becomes."""
        handle = await self.line.send("tools/call", name=tool, arguments={"text": text})
        task: str = handle["taskId"]
        return task

    async def until(self, task: str, status: str) -> Mapping[str, Any]:
        while True:
            state = await self.line.send("tasks/get", taskId=task)
            self.counts.polls += 1
            if state["status"] == status:
                return state
            assert state["status"] in ("working", "input_required"), state
            await asyncio.sleep(self.pause)

    async def _answer(self, task: str) -> float:
        """Answer the question; when that was acknowledged."""
        state = await self.until(task, "input_required")
        (key,) = state["inputRequests"]
        await self.line.send("tasks/update", taskId=task, inputResponses={key: SURE})
        return time.perf_counter()


@asynccontextmanager
async def _line(url: str) -> AsyncIterator[Line]:
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        yield Line(url, os.environ["BENCH_TOKEN"], reader, writer)
    finally:
        writer.close()


async def _load(url: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    counts, began, spent = Counts(), time.monotonic(), time.process_time()

    async def client(number: int) -> None:
        count = 0
        async with _line(url) as line:
            follower = Follower(line, counts, options["pause"])
            while time.monotonic() < began + options["seconds"]:
                count += 1
                await follower.task(options["tool"], f"hello {number} {count}")

    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*map(client, range(options["clients"])))
    return {
        "tasks": counts.tasks,
        "polls": counts.polls,
        "seconds": time.monotonic() - began,
        "cpu": time.process_time() - spent,
        "answered": counts.answered,
    }


async def _wait(url: str, count: int) -> Mapping[str, Any]:
    began, numbers = time.monotonic(), iter(range(count))

    async def client() -> None:
        async with _line(url) as line:
            follower = Follower(line, Counts(), 0.05)
            tasks = [await follower.call(ASKS, f"hello {number}") for number in numbers]
            for task in tasks:
                await follower.until(task, "input_required")

    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*(client() for _ in range(SIDE_BY_SIDE)))
    return {"seconds": time.monotonic() - began}


async def main(url: str) -> None:
    while line := await asyncio.to_thread(sys.stdin.readline):
        options = json.loads(line)
        waits = options.get("wait")
        report = await (_load(url, options) if waits is None else _wait(url, waits))
        print(json.dumps(report), flush=True)


if __name__ == "__main__":
    uvloop.run(main(sys.argv[1]))
