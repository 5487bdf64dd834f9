"""`/healthz`, `/readyz`, `/metrics` and `/status.json`; 404 for what does not exist.

What they tell about the inside needs the metrics token. Peer addresses decide nothing: behind a proxy on
the same machine every request comes from loopback.
"""

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import Any

import orjson

from mcphost.observability import exposition, health
from mcphost.observability.availability import Source, availability
from mcphost.protocol.headers import Headers
from mcphost.serving.database import DATABASE_ERRORS, in_database
from mcphost.serving.process import status as platform
from mcphost.serving.process.status import PlatformStatus
from mcphost.transport import cors, errors
from mcphost.transport.guard import is_probe_allowed
from mcphost.transport.options import options
from mcphost.transport.request import Receive
from mcphost.transport.response import Send, send_json

Application = Callable[[Mapping[str, Any], Receive, Send], Awaitable[None]]


def _checked(application: Application) -> Application:
    """Refuse a Host that is not known, against DNS rebinding."""

    @wraps(application)
    async def checked(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        if is_probe_allowed(Headers(scope["headers"])):
            await application(scope, receive, send)
        else:
            await send_json(send, 403, b'{"error":"host_not_allowed"}')

    return checked


@_checked
async def healthz(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    await send_json(send, 200, b'{"status":"ok"}')


@_checked
async def readyz(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """Answer 200 when every health probe passes, else 503: one word, or with the metrics token why."""
    await _send_readiness(send, detailed=_has_token(scope))


@_checked
async def readyz_in_detail(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """As `readyz`, with the reasons for everyone: for a port that only this machine reaches."""
    await _send_readiness(send, detailed=True)


async def _send_readiness(send: Send, *, detailed: bool) -> None:
    """Answer with the failing probes and why, if `detailed`.

    Warnings, about what the process can do without for a while, do not change the status; nor do facts,
    such as how the sandbox of scripts is confined, once a worker has started.
    """
    problems = health.problems()
    status, status_text = (503, "unready") if problems else (200, "ready")
    facts: dict[str, Any] = {"status": status_text}
    if detailed:
        facts["problems"] = problems
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


@_checked
async def metrics(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """Answer a scrape by Prometheus; 404 unless a metrics token is set.

    The text is rendered in a thread, because that takes longer than many calls.
    """
    if await _refused(scope, send):
        return
    accept = Headers(scope["headers"]).get("accept") or ""
    loop = asyncio.get_running_loop()
    body, media_type = await loop.run_in_executor(_writer, exposition.render, accept)
    await _send_text(send, body, media_type)


@_checked
async def status(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """Answer the status of all processes: 200 if all is well, otherwise 503, with the reasons.

    It has the same protection as the metrics.
    """
    if await _refused(scope, send):
        return
    platform_status = await _platform_status()
    code = 200 if platform_status.good else 503
    no_store = [(b"cache-control", b"no-store")]
    await send_json(send, code, orjson.dumps(platform_status.as_json()), no_store)


async def _platform_status() -> PlatformStatus:
    if availability.lacks(Source.CONNECTION):
        return platform.without_database("The database is unreachable.")
    try:
        async with asyncio.timeout(STATUS_SECONDS):
            return await in_database(platform.read)
    except (*DATABASE_ERRORS, TimeoutError):
        return platform.without_database("The database is unreachable, or too slow.")


async def _refused(scope: Mapping[str, Any], send: Send) -> bool:
    """Refuse a request that does not come from monitoring; return whether it was refused."""
    if not options().metrics_token:
        await send_json(send, 404, b'{"error":"not_found"}')
    elif not _has_token(scope):
        await send_json(send, 401, b'{"error":"unauthorized"}', [CHALLENGE])
    elif scope["method"] not in METHODS:
        allow = (b"allow", ", ".join(METHODS).encode())
        await send_json(send, 405, b'{"error":"method_not_allowed"}', [allow])
    else:
        return False
    return True


def _has_token(scope: Mapping[str, Any]) -> bool:
    """Whether a metrics token is set, and the request has it."""
    token = options().metrics_token
    authorization = Headers(scope["headers"]).get("authorization") or ""
    scheme, _, presented = authorization.partition(" ")
    same = hmac.compare_digest(presented.strip().encode(), token.encode())
    return bool(token) and same and scheme.lower() == "bearer"


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
    await send_json(send, 404, errors.NOT_FOUND, cors.ANYONE)
