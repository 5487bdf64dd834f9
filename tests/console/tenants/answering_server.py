"""A server that answers as this one does, over real sockets, but for what a test changes."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import orjson

from mcphost.transport.oauth.metadata import of_resource, of_server

SECONDS = 30
ENDPOINT = "/t/acme/mcp"
RESOURCE = f"/.well-known/oauth-protected-resource{ENDPOINT}"
AUTHORIZATION_SERVER = "/.well-known/oauth-authorization-server"
TOKEN = "the token that is issued"


class Canned(NamedTuple):
    """A response."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = (("Content-Type", "application/json"),)


def result(**fields: Any) -> Canned:
    return Canned(200, orjson.dumps({"jsonrpc": "2.0", "id": 1, "result": fields}))


@dataclass
class AnsweringServer:
    """`changed` has other responses by what is asked: a path, a method of MCP, or "no token"."""

    port: int
    changed: dict[str, Canned] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def respond(self, method: str, path: str, authorization: str | None, body: bytes) -> Canned:
        key = path
        if path == ENDPOINT and method == "POST":
            key = "no token" if authorization is None else orjson.loads(body)["method"]
        elif path == ENDPOINT:
            key = method
        self.requests.append((method, path))
        return self.changed[key] if key in self.changed else self._right(key)

    def _right(self, key: str) -> Canned:
        document = f"{self.origin}{RESOURCE}"
        session = (("Content-Type", "application/json"), ("Mcp-Session-Id", "session"))
        begun = {"protocolVersion": "2025-11-25"}
        responses = {
            RESOURCE: Canned(200, orjson.dumps(of_resource(self.origin, "acme"))),
            AUTHORIZATION_SERVER: Canned(200, orjson.dumps(of_server(self.origin))),
            "/register": Canned(201, b'{"client_id": "dcr-doctor"}'),
            "/token": Canned(200, orjson.dumps({"access_token": TOKEN})),
            "/revoke": Canned(200),
            "no token": Canned(
                401, b"{}", (("WWW-Authenticate", f'Bearer resource_metadata="{document}"'),)
            ),
            "OPTIONS": Canned(204, headers=(("Access-Control-Allow-Origin", "*"),)),
            "DELETE": Canned(204),
            "server/discover": result(supportedVersions=["2026-07-28"]),
            "initialize": result(**begun)._replace(headers=session),
            "tools/list": result(tools=[{"name": "echo"}]),
        }
        return responses.get(key, Canned(404, b"<html>", (("Content-Type", "text/html"),)))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    answering: AnsweringServer

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        canned = self.answering.respond(
            self.command, self.path, self.headers.get("authorization"), body
        )
        self.send_response(canned.status)
        for name, value in canned.headers:
            self.send_header(name, value)
        if canned.status != 204:
            self.send_header("Content-Length", str(len(canned.body)))
        self.end_headers()
        self.wfile.write(canned.body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def answering_server() -> Iterator[AnsweringServer]:
    methods = ("GET", "POST", "OPTIONS", "DELETE")
    handler: type[_Handler] = type(
        "Handler", (_Handler,), {f"do_{method}": _Handler.answer for method in methods}
    )
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    answering = handler.answering = AnsweringServer(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield answering
    finally:
        server.shutdown()
        server.server_close()
        thread.join(SECONDS)
