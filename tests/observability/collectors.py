"""A collector of traces for tests: OTLP over real HTTP, decoded."""

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

PATIENCE = 30.0


class Collector:
    """Listens on a free port of this machine. `status` is the HTTP status of its responses."""

    def __init__(self) -> None:
        self.status = 200
        self.requests: list[ExportTraceServiceRequest] = []
        self.headers: list[dict[str, str]] = []
        self._heard = threading.Semaphore(0)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def spans(self) -> list[Any]:
        """Every span accepted so far."""
        return [
            span
            for request in self.requests
            for of_resource in request.resource_spans
            for of_scope in of_resource.scope_spans
            for span in of_scope.spans
        ]

    def heard(self) -> None:
        """Wait for the next request."""
        assert self._heard.acquire(timeout=PATIENCE)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(PATIENCE)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                if collector.status == 200:
                    request = ExportTraceServiceRequest.FromString(body)
                    collector.requests.append(request)
                    collector.headers.append({k.lower(): v for k, v in self.headers.items()})
                self.send_response(collector.status)
                self.send_header("content-length", "0")
                self.end_headers()
                collector._heard.release()

            def log_message(self, format: str, *args: Any) -> None:
                """Log nothing."""

        return Handler


def attributes(span: Any) -> dict[str, Any]:
    """A span's or a resource's attributes, as they were received."""
    return {
        pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in span.attributes
    }
