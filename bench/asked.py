"""Many who are asked, in one process: `python -m bench.asked URL COUNT`, with the token in BENCH_TOKEN.

Each has a session of revision 2025-11-25 and calls the tool `ask`, whose question comes on the stream
of the call and stays. Writes a line of JSON when all are asked ({"asking": seconds it took}). After
the next line on standing input everybody answers, and once every stream has had its own result and
has ended, another line is written ({"answered": seconds}).
"""

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

SIDE_BY_SIDE = 100
PATIENCE = 180.0
REVISION = "2025-11-25"
CLIENT = {
    "protocolVersion": REVISION,
    "capabilities": {"elicitation": {"form": {}}},
    "clientInfo": {"name": "bench", "version": "1"},
}
Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Asked:
    """One session with one call, whose stream stays open while its question does."""

    def __init__(self, url: str, token: str, number: int) -> None:
        self._address = urlsplit(url)
        self._token = token
        self._text = f"hello {number}"
        self._session = ""
        self._question: str | int = ""

    async def begin(self) -> None:
        """Open a session, make the call, and have its question."""
        line = await self._open()
        line[1].write(self._request(_message(1, method="initialize", params=CLIENT)))
        head = (await line[0].readuntil(b"\r\n\r\n")).decode()
        pairs = [line.partition(": ") for line in head.split("\r\n")[1:] if line]
        fields = {name.lower(): value for name, _, value in pairs}
        self._session = fields["mcp-session-id"]
        if "content-length" in fields:
            await line[0].readexactly(int(fields["content-length"]))
        else:  # an event stream, in chunks
            await line[0].readuntil(b"\r\n0\r\n\r\n")
        call = {"name": "ask", "arguments": {"text": self._text}}
        self._stream, self._kept = line  # a writer without a reference is closed
        self._kept.write(self._request(_message(2, method="tools/call", params=call)))
        question = await self._message(
            lambda message: message.get("method") == "elicitation/create"
        )
        self._question = question["id"]

    async def answer(self) -> None:
        """Answer the question on a connection of its own."""
        line = await self._open()
        result = {"action": "accept", "content": {"sure": True}}
        line[1].write(self._request(_message(self._question, result=result)))
        status = await line[0].readline()
        assert b" 202 " in status, status
        line[1].close()

    async def ends(self) -> None:
        """Read the stream to its result, which must be that of this call."""
        ended = await self._message(lambda message: message.get("id") == 2)
        (block,) = ended["result"]["content"]
        assert block["text"] == self._text, ended

    async def _open(self) -> Line:
        return await asyncio.open_connection(self._address.hostname, self._address.port)

    async def _message(self, matches: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next message of the stream that is wanted; all else is passed over."""
        while line := await self._stream.readline():
            if line.startswith(b"data: {"):
                message: dict[str, Any] = json.loads(line[6:])
                if matches(message):
                    return message
        raise AssertionError("the stream ended too early")

    def _request(self, body: bytes) -> bytes:
        lines = [
            f"POST {self._address.path} HTTP/1.1",
            f"Host: {self._address.netloc}",
            f"Authorization: Bearer {self._token}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"Content-Length: {len(body)}",
        ]
        if self._session:
            lines += [f"Mcp-Session-Id: {self._session}", f"MCP-Protocol-Version: {REVISION}"]
        return "\r\n".join([*lines, "", ""]).encode() + body


def _message(id: str | int, **more: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, **more}).encode()


async def _all(does: Sequence[Callable[[], Awaitable[None]]]) -> float:
    """Do all of it, so many at a time; the seconds that it took."""
    room, began = asyncio.Semaphore(SIDE_BY_SIDE), time.monotonic()

    async def run_action(action: Callable[[], Awaitable[None]]) -> None:
        async with room:
            await action()

    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*map(run_action, does))
    return time.monotonic() - began


async def main(url: str, count: int) -> None:
    token = os.environ["BENCH_TOKEN"]
    crowd = [Asked(url, token, number) for number in range(count)]
    print(json.dumps({"asking": await _all([session.begin for session in crowd])}), flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    began = time.monotonic()
    await _all([session.answer for session in crowd])
    await _all([session.ends for session in crowd])
    print(json.dumps({"answered": time.monotonic() - began}), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
