"""The settings that every request needs, cached."""

from functools import cache
from typing import NamedTuple

from django.conf import settings

from mcphost.transport.response import StreamLimits


class TransportOptions(NamedTuple):
    """Sizes are in bytes, times in seconds."""

    allowed_hosts: tuple[str, ...]
    body_limit: int
    body_seconds: float
    form_limit: int
    django_requests: int
    stream: StreamLimits
    metrics_token: str


@cache
def options() -> TransportOptions:
    """The current options. `wiring` clears the cache when a setting changes (only in tests)."""
    return TransportOptions(
        allowed_hosts=tuple(settings.ALLOWED_HOSTS),
        body_limit=settings.MCPHOST_BODY_LIMIT,
        body_seconds=settings.MCPHOST_BODY_SECONDS,
        form_limit=settings.MCPHOST_FORM_LIMIT,
        django_requests=settings.MCPHOST_DJANGO_REQUESTS,
        stream=StreamLimits(
            stream_after=settings.MCPHOST_STREAM_AFTER_SECONDS,
            comment_every=settings.MCPHOST_COMMENT_SECONDS,
            unread=settings.MCPHOST_UNREAD_LIMIT,
        ),
        metrics_token=settings.MCPHOST_METRICS_TOKEN,
    )
