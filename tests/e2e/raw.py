"""HTTP by hand, for what no client library would send or do."""

import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from tests.e2e.processes import Server

REVISION = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
PATIENCE = 20.0


@dataclass(frozen=True)
class Reply:
    """An HTTP response, read to its end. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def message(self) -> Any:
        return last_message(self.headers["content-type"], self.body)


def last_message(content_type: str, body: bytes) -> Any:
    if not content_type.startswith("text/event-stream"):
        return json.loads(body)
    events = [line for line in body.splitlines() if line.startswith(b"data:")]
    return json.loads(events[-1].removeprefix(b"data:"))


def call(name: str, arguments: Mapping[str, Any], **meta: Any) -> dict[str, Any]:
    return request("tools/call", {"name": name, "arguments": arguments}, **meta)


def request(method: str, params: Mapping[str, Any], **meta: Any) -> dict[str, Any]:
    envelope = {
        f"{PREFIX}protocolVersion": REVISION,
        f"{PREFIX}clientInfo": {"name": "e2e", "version": "1"},
        f"{PREFIX}clientCapabilities": {},
        **meta,
    }
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": envelope}}


def headers(message: Mapping[str, Any], token: str | None) -> dict[str, str]:
    wanted = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": REVISION,
        "Mcp-Method": message["method"],
    }
    if name := message["params"].get("name") or message["params"].get("taskId"):
        wanted["Mcp-Name"] = name
    return wanted | ({"Authorization": f"Bearer {token}"} if token is not None else {})


def send(server: Server, method: str, path: str, body: bytes = b"", **fields: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in fields.items()}
    return exchange(server, method, path, body, named)


def exchange(
    server: Server, method: str, path: str, body: bytes, fields: Mapping[str, str]
) -> Reply:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)) as line:
        line.request(method, path, body or None, dict(fields))
        response = line.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Reply(response.status, found, response.read())


def post(
    server: Server, message: Mapping[str, Any], token: str | None, tenant: str = "demo"
) -> Reply:
    fields = headers(message, token)
    return exchange(server, "POST", f"/t/{tenant}/mcp", json.dumps(message).encode(), fields)


@contextmanager
def opened(server: Server, message: Mapping[str, Any]) -> Iterator[socket.socket]:
    body = json.dumps(message).encode()
    fields = {**headers(message, server.token), "Content-Length": str(len(body))}
    lines = [f"{name}: {value}" for name, value in {"Host": "localhost", **fields}.items()]
    head = "\r\n".join(["POST /t/demo/mcp HTTP/1.1", *lines, "", ""]).encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as line:
        line.sendall(head + body)
        yield line


def read_until(line: socket.socket, awaited: bytes) -> bytes:
    seen = b""
    while awaited not in seen:
        piece = line.recv(65536)
        assert piece, f"the server hung up first: {seen!r}"
        seen += piece
    return seen


def read_to_the_end(line: socket.socket) -> bytes:
    seen = b""
    while piece := line.recv(65536):
        seen += piece
    return seen


@contextmanager
def streaming(server: Server, message: Mapping[str, Any], awaited: bytes) -> Iterator[bytes]:
    """Post a message and read until `awaited` was seen; leaving hangs up. What was read by then."""
    with opened(server, message) as line:
        yield read_until(line, awaited)
