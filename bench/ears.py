"""Many listeners in one process: `python -m bench.ears PORT COUNT`, with the token in BENCH_TOKEN.

Raw sockets and one `epoll`, so that what is measured is the server. Writes a line of JSON when all
listen ({"listening": seconds it took}), and for every change, when all have heard of it, at which
moments of the machine's monotonic clock the first and the last did: {"first", "last"}.
"""

import json
import os
import select
import socket
import sys
import time
from collections.abc import Iterator

SIDE_BY_SIDE = 200
PATIENCE = 120.0
ACKNOWLEDGED = b"subscriptions/acknowledged"
CHANGED = b"tools/list_changed"
KEPT = len(ACKNOWLEDGED)
REVISION = "2026-07-28"
LISTEN = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "subscriptions/listen",
    "params": {
        "notifications": {"toolsListChanged": True},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    },
}


class Ears:
    """Connections on each of which the same words are waited for."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._lines: dict[int, socket.socket] = {}
        self._tails: dict[int, bytes] = {}

    def open(self, port: int, request: bytes) -> None:
        line = socket.create_connection(("127.0.0.1", port), PATIENCE)
        line.sendall(request)
        line.setblocking(False)
        self._lines[line.fileno()] = line
        self._poll.register(line, select.EPOLLIN)

    def all_hear(self, words: bytes, count: int) -> tuple[float, float]:
        """Wait until `count` connections had `words`: the moments of the first and the last."""
        moments = sorted(self._moments(words, count))
        return moments[0], moments[-1]

    def _moments(self, words: bytes, count: int) -> Iterator[float]:
        heard: set[int] = set()
        while len(heard) < count:
            events = self._poll.poll(PATIENCE)
            assert events, f"only {len(heard)} of {count} heard {words!r}"
            for number, _ in events:
                if self._has(number, words) and number not in heard:
                    heard.add(number)
                    yield time.monotonic()

    def _has(self, number: int, words: bytes) -> bool:
        piece = self._lines[number].recv(65536)
        assert piece, f"the server hung up: {self._tails.get(number)!r}"
        received = self._tails.get(number, b"") + piece
        complete = words in received
        self._tails[number] = b"" if complete else received[-KEPT:]
        return complete


def request(port: int, token: str) -> bytes:
    """The bytes of a request to listen."""
    body = json.dumps(LISTEN).encode()
    lines = (
        "POST /t/demo/mcp HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        f"Authorization: Bearer {token}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"MCP-Protocol-Version: {REVISION}",
        "Mcp-Method: subscriptions/listen",
        f"Content-Length: {len(body)}",
    )
    return "\r\n".join([*lines, "", ""]).encode() + body


def main(port: int, count: int) -> None:
    ears, message, began = Ears(), request(port, os.environ["BENCH_TOKEN"]), time.monotonic()
    for opened in range(0, count, SIDE_BY_SIDE):
        many = min(SIDE_BY_SIDE, count - opened)
        for _ in range(many):
            ears.open(port, message)
        ears.all_hear(ACKNOWLEDGED, many)
    print(json.dumps({"listening": time.monotonic() - began}), flush=True)
    while True:
        first, last = ears.all_hear(CHANGED, count)
        print(json.dumps({"first": first, "last": last}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
