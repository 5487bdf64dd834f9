"""A host of metadata documents: real sockets and TLS on loopback, under a name that it is given."""

import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import orjson
import pytest
from pytest_django import Settings

from mcphost.egress.client import Egress
from mcphost.identity.oauth import client_metadata
from tests.egress.conftest import Authority

NAME = "client.example"


@dataclass
class DocumentHost:
    """What the host answers, whatever is asked for, and the paths that it was asked for.

    `silent`: it takes requests and never answers.
    """

    port: int = 0
    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    silent: bool = False
    requests: list[str] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"https://{NAME}:{self.port}/client.json"

    def publish(self, **fields: Any) -> None:
        """Have a document that is good but for these fields."""
        self.status, self.headers = 200, {}
        self.body = orjson.dumps(document(self.url) | fields)


def document(url: str) -> dict[str, Any]:
    return {"client_id": url, "client_name": "Reader", "redirect_uris": ["http://127.0.0.1/cb"]}


class _Handler(BaseHTTPRequestHandler):
    host: DocumentHost

    def do_GET(self) -> None:
        self.host.requests.append(self.path)
        if self.host.silent:
            self.host.ended.wait()
            return
        self.send_response(self.host.status)
        for name, value in {
            "Content-Length": str(len(self.host.body)),
            **self.host.headers,
        }.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(self.host.body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving(authority: Authority) -> Iterator[DocumentHost]:
    host = DocumentHost()
    handler = type("Handler", (_Handler,), {"host": host})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    context: ssl.SSLContext = authority.server(NAME)
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    host.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield host
    finally:
        host.ended.set()
        server.shutdown()
        server.server_close()
        thread.join(30)


def reach(
    host: DocumentHost,
    authority: Authority,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    addresses: Mapping[str, Sequence[str]] | None = None,
) -> list[str]:
    """Let documents be fetched from the host; return the names that are resolved, as they are."""
    resolved: list[str] = []

    def resolve(name: str) -> Sequence[str]:
        resolved.append(name)
        return (addresses or {}).get(name, ["127.0.0.1"])

    settings.MCPHOST_EGRESS_LOOPBACK_PORTS = frozenset({host.port})
    monkeypatch.setattr(
        client_metadata, "Egress", partial(Egress, tls=authority.client(), resolve=resolve)
    )
    return resolved
