"""A local service with a description in OpenAPI, which tools are made of."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

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
