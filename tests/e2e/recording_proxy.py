"""What stands between a server and a service that it calls: it sees each request, and loses responses
or holds them when it is told to."""

import http.client
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

from mcphost.kinds.http.replies import ANSWERS

__all__ = ["ANSWERS", "Relay", "Seen", "relaying"]

PATIENCE = 60


class Seen(NamedTuple):
    """A request as it passed."""

    key: str
    media_type: str
    body: bytes


class Relay:
    """Passes requests on to the port `service` of 127.0.0.1."""

    def __init__(self, service: int) -> None:
        self.service = service
        self.port = 0
        self.seen: list[Seen] = []
        self.losses = 0
        self.holds = threading.Event()
        self.holds.set()

    def handler(self) -> type[BaseHTTPRequestHandler]:
        relay = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = PATIENCE

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                key, kind = self.headers["Idempotency-Key"], self.headers["Content-Type"]
                relay.seen.append(Seen(key, kind, body))
                fields = dict(self.headers.items())
                status, media_type, answer = relay.pass_on(self.path, fields, body)
                relay.holds.wait(PATIENCE)
                if relay.losses:
                    relay.losses -= 1
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("Content-Type", media_type)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        return Handler

    def pass_on(self, path: str, fields: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        with closing(
            http.client.HTTPConnection("127.0.0.1", self.service, timeout=PATIENCE)
        ) as line:
            line.request("POST", path, body, fields)
            response = line.getresponse()
            media_type, answer = response.headers["Content-Type"], response.read()
        return response.status, media_type, answer


@contextmanager
def relaying(service: int) -> Iterator[Relay]:
    relay = Relay(service)
    server = ThreadingHTTPServer(("127.0.0.1", 0), relay.handler())
    server.daemon_threads = True
    relay.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, name="relay")
    thread.start()
    try:
        yield relay
    finally:
        server.shutdown()
        thread.join(PATIENCE)
        server.server_close()
