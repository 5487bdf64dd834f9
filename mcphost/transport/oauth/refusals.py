"""Refusals of OAuth's endpoints in JSON (RFC 6749 section 5.2), readable by any web page; and what is answered
before the method is looked at: a wrong Host, a preflight."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from mcphost.protocol.headers import Headers
from mcphost.transport import cors
from mcphost.transport.guard import is_host_allowed
from mcphost.transport.request import Receive
from mcphost.transport.response import RawHeaders, Send, send_empty, send_json

_CODES: Final = {500: "server_error", 503: "temporarily_unavailable"}


async def refuse(send: Send, status: int, description: str, headers: RawHeaders = ()) -> None:
    """Send an error with the code for `status`."""
    body = {"error": _CODES.get(status, "invalid_request"), "error_description": description}
    await send_json(send, status, orjson.dumps(body), [*cors.ANYONE, *headers])


async def answered_before_method(headers: Headers, method: str, send: Send) -> bool:
    """Answer a request with a wrong Host (DNS rebinding) or a preflight; return whether it was one."""
    if not is_host_allowed(headers):
        await refuse(send, 403, "The Host of the request is not allowed.")
    elif method == "OPTIONS":
        await send_empty(send, 204, cors.preflight(headers))
    else:
        return False
    return True


async def browsers_only(scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
    """Answer a program that requests a page for people."""
    if not await answered_before_method(Headers(scope["headers"]), scope["method"], send):
        await refuse(send, 400, "This is a page for people: open the address in a browser.")
