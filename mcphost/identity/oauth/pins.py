"""Pins: what the metadata documents of well-known clients say, for when they cannot be read.

Their hosts answer some data centres with 403, and have had outages. A pin serves until its document
is read; then what was read serves. The redirect URIs of native clients match on any port.
"""

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
