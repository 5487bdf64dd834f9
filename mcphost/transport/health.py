"""`/healthz`: the process lives. `/readyz`: it can do its work, or says what keeps it from it."""

from collections.abc import Mapping
from typing import Any

import orjson

from mcphost.observability import health
from mcphost.serving.lifecycle import ensure_started
from mcphost.transport.bodies import Receive
from mcphost.transport.responder import Send, send_json


async def healthz(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    await send_json(send, 200, b'{"status":"ok"}')


async def readyz(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """200 when every part is well; 503 with the parts that are not and why.

    Warnings, of what it can do without for a while, change no status.
    """
    ensure_started()
    problems = health.problems()
    status, word = (503, "unready") if problems else (200, "ready")
    facts = {"status": word, "problems": problems}
    if warnings := health.warnings():
        facts["warnings"] = warnings
    await send_json(send, status, orjson.dumps(facts))
