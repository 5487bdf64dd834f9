"""`/healthz`, `/readyz` and `/metrics`; 404 below `/.well-known/` (RFC 9728, 8414)."""

import asyncio
import hmac
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson

from mcphost.observability import exposition, health
from mcphost.protocol.headers import Headers
from mcphost.serving.process.lifecycle import ensure_started
from mcphost.transport import cors
from mcphost.transport.options import options
from mcphost.transport.request import Receive
from mcphost.transport.response import Send, send_json


async def healthz(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    await send_json(send, 200, b'{"status":"ok"}')


async def readyz(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """Answer 200 when every health probe passes; 503 with the failing ones and why.

    Warnings, about what the process can do without for a while, do not change the status.
    """
    ensure_started()
    problems = health.problems()
    status, word = (503, "unready") if problems else (200, "ready")
    facts = {"status": word, "problems": problems}
    if warnings := health.warnings():
        facts["warnings"] = warnings
    await send_json(send, status, orjson.dumps(facts))


CHALLENGE = (b"www-authenticate", b'Bearer realm="mcphost metrics"')
METHODS = ("GET", "HEAD")

# Not asyncio's default executor: when tools block all of its threads, metrics are needed most.
_writer = ThreadPoolExecutor(1, thread_name_prefix="mcphost-metrics")


async def metrics(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """Answer a scrape by Prometheus; 404 unless a metrics token is set.

    The text is rendered in a thread, because that takes longer than many calls.
    """
    ensure_started()
    token = options().metrics_token
    headers = Headers(scope["headers"])
    if not token:
        await send_json(send, 404, b'{"error":"not_found"}')
    elif not _fits(headers.get("authorization") or "", token):
        await send_json(send, 401, b'{"error":"unauthorized"}', [CHALLENGE])
    elif scope["method"] not in METHODS:
        allow = (b"allow", ", ".join(METHODS).encode())
        await send_json(send, 405, b'{"error":"method_not_allowed"}', [allow])
    else:
        accept = headers.get("accept") or ""
        loop = asyncio.get_running_loop()
        body, media_type = await loop.run_in_executor(_writer, exposition.render, accept)
        await _send_text(send, body, media_type)


def _fits(authorization: str, token: str) -> bool:
    scheme, _, presented = authorization.partition(" ")
    same = hmac.compare_digest(presented.strip().encode(), token.encode())
    return same and scheme.lower() == "bearer"


async def _send_text(send: Send, body: bytes, media_type: str) -> None:
    headers = [
        (b"content-type", media_type.encode("latin-1")),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def not_found(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """Answer 404 in JSON, the same for every path."""
    await send_json(send, 404, b'{"error":"not_found"}', cors.ANYONE)
