"""The page for a person who opens a tenant's URL in a browser, whose `Accept` names HTML.

It is the same for every name, and made without a look-up: it does not tell whether a tenant exists.
"""

from typing import Final

from mcphost.protocol.headers import Headers
from mcphost.transport.guard import MAX_ACCEPT
from mcphost.transport.request import HttpRequest
from mcphost.transport.response import RawHeaders, Send

_POLICY: Final = (
    b"default-src 'none'; style-src 'self'; img-src 'self'; "
    b"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_OF_CLIENTS: Final = ("mcp-session-id", "mcp-protocol-version", "last-event-id")
"""Headers that MCP clients send and browsers do not."""

PAGE: Final = b"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>MCP server | mcphost</title><link rel="icon" type="image/svg+xml" href="/static/console/favicon.svg"><link rel="stylesheet" href="/static/console/plain.css"></head>
<body><main><p class="code">MCP</p><h1>This is the address of an MCP server</h1>
<p>Programs connect here, not browsers: <a href="https://modelcontextprotocol.io" rel="noreferrer">MCP</a> clients such as Claude Code, VS Code or Cursor.</p>
<p>To connect one, give it the address of this page. It then opens a browser in which you sign in. A client that cannot do that needs a token in the header <code>Authorization: Bearer &hellip;</code></p>
<p>Members create tokens under <a href="/admin/you/">Your access</a>. Owners, operators and auditors find set-ups to paste on the page <i>Connect</i> of their tenant in the <a href="/admin/">console</a>.</p></main></body></html>
"""
_HEADERS: Final[RawHeaders] = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-length", b"%d" % len(PAGE)),
    (b"cache-control", b"no-store"),
    (b"vary", b"Accept"),
    (b"content-security-policy", _POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)


def is_browser(request: HttpRequest) -> bool:
    """Whether a GET is that of a browser: it names HTML, and nothing that MCP clients send."""
    return names_html(request.headers) and not any(map(request.headers.count, _OF_CLIENTS))


async def show(send: Send) -> int:
    """Send the page; return its status."""
    await send({"type": "http.response.start", "status": 200, "headers": list(_HEADERS)})
    await send({"type": "http.response.body", "body": PAGE})
    return 200


def names_html(headers: Headers) -> bool:
    """Whether Accept names HTML, which browsers do and programs do not."""
    accept = headers.get("accept") or ""
    ranges = accept.lower().split(",") if len(accept) <= MAX_ACCEPT else ()
    return any(part.partition(";")[0].strip() == "text/html" for part in ranges)
