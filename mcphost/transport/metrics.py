"""`/metrics`: the process's numbers, for whoever has the token of `MCPHOST_METRICS_TOKEN`."""

import asyncio
import hmac
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mcphost.observability import exposition
from mcphost.protocol.headers import Headers
from mcphost.serving.lifecycle import ensure_started
from mcphost.transport.bodies import Receive
from mcphost.transport.options import options
from mcphost.transport.responder import Send, send_json

CHALLENGE = (b"www-authenticate", b'Bearer realm="mcphost metrics"')
METHODS = ("GET", "HEAD")

# Not one of asyncio's own, which tools may hold: then of all times the numbers are wanted.
_writer = ThreadPoolExecutor(1, thread_name_prefix="mcphost-metrics")


async def metrics(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """What Prometheus scrapes; without a token set there is nothing here.

    It is written in a thread: it takes longer than many a call.
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
