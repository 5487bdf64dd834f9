"""When clients should come back for the rest of a stream whose response ends."""

from typing import Final

from mcphost.feed.nodes import heartbeat
from mcphost.serving.shutdown import draining

RETRY_MS: Final = 1000
RESTART_MS: Final = 10_000
"""Where only this process could serve the client, and it stops: SDKs try twice, and the restart of a
single process takes up to 17 seconds."""


def retry_ms() -> int:
    """The SSE `retry` value for a response that ends now while its stream goes on."""
    return RESTART_MS if draining() and not heartbeat.free() else RETRY_MS
