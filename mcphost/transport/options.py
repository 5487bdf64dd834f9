"""The settings that every request needs, read once. A changed setting is read anew."""

from functools import cache
from typing import NamedTuple

from django.conf import settings

from mcphost.transport.responder import StreamLimits


class Options(NamedTuple):
    """Sizes are in bytes, times in seconds."""

    allowed_hosts: tuple[str, ...]
    body_limit: int
    body_seconds: float
    form_limit: int
    stream: StreamLimits
    metrics_token: str


@cache
def options() -> Options:
    """What holds now. `wiring` forgets it when a setting is changed, which only tests do."""
    return Options(
        allowed_hosts=tuple(settings.ALLOWED_HOSTS),
        body_limit=settings.MCPHOST_BODY_LIMIT,
        body_seconds=settings.MCPHOST_BODY_SECONDS,
        form_limit=settings.MCPHOST_FORM_LIMIT,
        stream=StreamLimits(
            stream_after=settings.MCPHOST_STREAM_AFTER_SECONDS,
            comment_every=settings.MCPHOST_COMMENT_SECONDS,
            unread=settings.MCPHOST_UNREAD_LIMIT,
        ),
        metrics_token=settings.MCPHOST_METRICS_TOKEN,
    )
