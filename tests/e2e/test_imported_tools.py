"""A description of a local service, imported in the admin; its tools are called by real clients."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.e2e.admin import Admin, Form
from tests.e2e.callers import command
from tests.e2e.processes import Server, serving
from tests.e2e.talking import Talk, conversing

IMPORT = "/admin/t/demo/tools/import/"
CLIENTS = {"python": "2025-11-25", "fastmcp": "2026-07-28"}
OPERATIONS = ("GET /orders/{id}", "POST /orders")
PATIENCE = 30


def description(base: str) -> dict[str, Any]:
    order = {
        "type": "object",
        "properties": {"item": {"type": "string"}, "amount": {"type": "integer", "default": 1}},
        "required": ["item"],
    }
    return {
        "openapi": "3.0.3",
        "info": {"title": "Orders", "version": "1"},
        "servers": [{"url": base}],
        "components": {"schemas": {"Order": order}},
        "paths": {
            "/orders": {
                "post": {
                    "operationId": "place",
                    "summary": "Place an order",
                    "requestBody": {
                        "required": True,
                        "content": {
                            "application/json": {"schema": {"$ref": "#/components/schemas/Order"}}
                        },
                    },
                }
            },
            "/orders/{id}": {
                "get": {
                    "operationId": "look_up",
                    "summary": "Look an order up",
                    "parameters": [
                        {
                            "name": "id",
                            "in": "path",
                            "required": True,
                            "schema": {"type": "string"},
                        },
                        {
                            "name": "fields",
                            "in": "query",
                            "schema": {"type": "array", "items": {"type": "string"}},
                        },
                    ],
                }
            },
        },
    }


@dataclass
class Orders:
    """The service: what it was asked, and where it is."""

    port: int = 0
    seen: list[tuple[str, str, Any]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def handler(self) -> type[BaseHTTPRequestHandler]:
        orders = self

        class Ordering(BaseHTTPRequestHandler):
            timeout = PATIENCE

            def do_GET(self) -> None:
                if self.path == "/openapi.json":
                    return self._reply(description(orders.url))
                orders.seen.append(("GET", self.path, None))
                query = parse_qs(urlsplit(self.path).query)
                return self._reply(
                    {"path": urlsplit(self.path).path, "fields": query.get("fields")}
                )

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                orders.seen.append(("POST", self.path, body))
                self._reply({"placed": body})

            def _reply(self, value: Any) -> None:
                body = json.dumps(value).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Ordering


@contextmanager
def ordering() -> Iterator[Orders]:
    orders = Orders()
    with ThreadingHTTPServer(("127.0.0.1", 0), orders.handler()) as server:
        orders.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield orders
        finally:
            server.shutdown()
            thread.join(PATIENCE)


@pytest.fixture(scope="module")
def orders() -> Iterator[Orders]:
    with ordering() as service:
        yield service


@pytest.fixture(scope="module")
def server(orders: Orders, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose demo tenant has imported the description and published both tools."""
    home = tmp_path_factory.mktemp("imported") / "home"
    with serving("uvicorn", home, MCPHOST_EGRESS_LOOPBACK_PORTS=str(orders.port)) as started:
        admin = Admin(started.port, (home / "admin-password").read_text().strip())
        _import(admin, orders.url)
        yield started


def _import(admin: Admin, base: str) -> None:
    settings = Form(admin.get("/admin/t/demo/settings/"))
    settings.fill("Hosts that tools may call", base)
    admin.post("/admin/t/demo/settings/", **settings.fields)
    admin.get(IMPORT)
    listed = admin.submit(IMPORT, url=f"{base}/openapi.json", _list="")
    kept = re.search(r'name="kept" value="([^"]+)"', listed)
    assert kept, "the document is not listed"
    preview = admin.submit(IMPORT, kept=kept[1], chosen=OPERATIONS, _preview="")
    assert f"POST {base}/orders" in preview
    admin.post(IMPORT, kept=kept[1], chosen=OPERATIONS, _create="")
    for name in ("place", "look_up"):
        admin.press("demo", "tools", name, "publish")


def _result(talk: Talk) -> Any:
    """The JSON that the service replied, as the client got it."""
    done = talk.hear("done")
    assert not done.get("isError"), done
    return json.loads(done["content"][0]["text"])


@pytest.mark.parametrize("client", CLIENTS)
def test_imported_operations_are_called_by_a_real_client(
    client: str, server: Server, orders: Orders, tmp_path: Path
) -> None:
    asked = {"revision": CLIENTS[client]} if client == "python" else {}
    told = {"url": server.url, "token": server.token, **asked}
    orders.seen.clear()
    with conversing(command(client), tmp_path, **told) as talk:
        met = talk.hear("met")
        assert met["revision"] == CLIENTS[client]
        assert {"place", "look_up"} <= set(met["tools"])
        talk.say({"call": "place", "arguments": {"body": {"item": "tea", "amount": 2}}})
        assert _result(talk) == {"placed": {"item": "tea", "amount": 2}}
        fields = ["item", "amount"]
        talk.say({"call": "look_up", "arguments": {"id": "a/b c", "fields": fields}})
        assert _result(talk) == {"path": "/orders/a%2Fb%20c", "fields": fields}
        talk.say({"call": "look_up", "arguments": {"fields": []}})
        assert talk.hear("done")["isError"]
    assert [method for method, _, _ in orders.seen] == ["POST", "GET"]
