"""`/healthz`, `/readyz`, `/metrics` and `/status.json`; 404 below `/.well-known/` (RFC 9728, 8414)."""

import asyncio
import hmac
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import orjson

from mcphost.observability import exposition, health
from mcphost.observability.availability import Source, availability
from mcphost.protocol.headers import Headers
from mcphost.serving.database import AWAY, in_database
from mcphost.serving.process import status as platform
from mcphost.serving.process.lifecycle import ensure_started
from mcphost.serving.process.status import PlatformStatus
from mcphost.transport import cors
from mcphost.transport.options import options
from mcphost.transport.request import Receive
from mcphost.transport.response import Send, send_json


async def healthz(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    await send_json(send, 200, b'{"status":"ok"}')


async def readyz(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """Answer 200 when every health probe passes; 503 with the failing ones and why.

    Warnings, about what the process can do without for a while, do not change the status; nor do facts,
    such as how the sandbox of scripts is confined, once a worker has started.
    """
    ensure_started()
    problems = health.problems()
    status, word = (503, "unready") if problems else (200, "ready")
    facts: dict[str, Any] = {"status": word, "problems": problems}
    if warnings := health.warnings():
        facts["warnings"] = warnings
    facts |= health.facts()
    await send_json(send, status, orjson.dumps(facts))


STATUS_SECONDS = 8.0
"""How long reading the status may take, with the wait for a database thread."""

CHALLENGE = (b"www-authenticate", b'Bearer realm="mcphost metrics"')
METHODS = ("GET", "HEAD")

# Not asyncio's default executor: when tools block all of its threads, metrics are needed most.
_writer = ThreadPoolExecutor(1, thread_name_prefix="mcphost-metrics")


async def metrics(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """Answer a scrape by Prometheus; 404 unless a metrics token is set.

    The text is rendered in a thread, because that takes longer than many calls.
    """
    ensure_started()
    if await _refused(scope, send):
        return
    accept = Headers(scope["headers"]).get("accept") or ""
    loop = asyncio.get_running_loop()
    body, media_type = await loop.run_in_executor(_writer, exposition.render, accept)
    await _send_text(send, body, media_type)


async def status(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """Answer the status of all processes: 200 if all is well, otherwise 503, with the reasons.

    It has the same protection as the metrics.
    """
    ensure_started()
    if await _refused(scope, send):
        return
    found = await _platform_status()
    code = 200 if found.good else 503
    no_store = [(b"cache-control", b"no-store")]
    await send_json(send, code, orjson.dumps(found.as_json()), no_store)


async def _platform_status() -> PlatformStatus:
    if availability.lacks(Source.CONNECTION):
        return platform.without_database("The database is unreachable.")
    try:
        async with asyncio.timeout(STATUS_SECONDS):
            return await in_database(platform.read)
    except (*AWAY, TimeoutError):
        return platform.without_database("The database is unreachable, or too slow.")


async def _refused(scope: Mapping[str, Any], send: Send) -> bool:
    """Refuse a request that does not come from monitoring; return whether it was refused."""
    token = options().metrics_token
    authorization = Headers(scope["headers"]).get("authorization") or ""
    if not token:
        await send_json(send, 404, b'{"error":"not_found"}')
    elif not _fits(authorization, token):
        await send_json(send, 401, b'{"error":"unauthorized"}', [CHALLENGE])
    elif scope["method"] not in METHODS:
        allow = (b"allow", ", ".join(METHODS).encode())
        await send_json(send, 405, b'{"error":"method_not_allowed"}', [allow])
    else:
        return False
    return True


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
