"""Pins: what the metadata documents of well-known clients say, for when they cannot be read.

Their hosts answer some data centres with 403, and have had outages. A pin serves until its document
is read; then what was read serves. The redirect URIs of native clients match on any port.

ChatGPT and Codex also have a document for each connection, which names the same id in its URL and in
its redirect URI. ChatGPT uses those with servers that do not send `iss` (RFC 9207), Codex did in older
versions.
"""

import re
from typing import Final, NamedTuple


class Pin(NamedTuple):
    """A client with a metadata document: its id is the document's URL."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]


PINS: Final = {
    pin.id: pin
    for pin in (
        Pin(
            "https://claude.ai/oauth/mcp-oauth-client-metadata",
            "Claude",
            ("https://claude.ai/api/mcp/auth_callback",),
        ),
        Pin(
            "https://claude.ai/oauth/claude-code-client-metadata",
            "Claude Code",
            ("http://localhost/callback", "http://127.0.0.1/callback"),
        ),
        Pin(
            "https://chatgpt.com/oauth/client.json",
            "ChatGPT",
            ("https://chatgpt.com/connector_platform_oauth_redirect",),
        ),
        Pin(
            "https://chatgpt.com/oauth/codex/client.json",
            "Codex",
            ("http://127.0.0.1/callback", "http://localhost/callback"),
        ),
        Pin(
            "https://vscode.dev/oauth/client-metadata.json",
            "Visual Studio Code",
            ("http://127.0.0.1:33418/", "https://vscode.dev/redirect"),
        ),
        Pin(
            "https://zed.dev/oauth/client-metadata.json",
            "Zed",
            ("http://127.0.0.1/callback",),
        ),
        Pin(
            "https://opencode.ai/oauth/opencode/client.json",
            "OpenCode",
            ("http://127.0.0.1/callback", "http://localhost/callback"),
        ),
    )
}

_OF_CONNECTIONS: Final = (
    (
        re.compile(r"https://chatgpt\.com/oauth/codex/(?P<id>[A-Za-z0-9_-]{1,64})/client\.json"),
        "Codex",
        "http://127.0.0.1/callback/",
    ),
    (
        re.compile(r"https://chatgpt\.com/oauth/(?P<id>[A-Za-z0-9_-]{1,64})/client\.json"),
        "ChatGPT",
        "https://chatgpt.com/connector/oauth/",
    ),
)


def pin_of(client_id: str) -> Pin | None:
    """Return the pin of a client; None if there is none."""
    if pin := PINS.get(client_id):
        return pin
    for pattern, name, redirect_uri in _OF_CONNECTIONS:
        if match := pattern.fullmatch(client_id):
            return Pin(client_id, name, (redirect_uri + match["id"],))
    return None
