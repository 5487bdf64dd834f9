"""Connect the wake-ups to the change log and to the process's health.

Cached settings are cleared when a setting changes.
"""

from typing import Any

from channels.layers import get_channel_layer
from django.conf import settings
from django.core.signals import setting_changed

from mcphost.feed.loop import loop
from mcphost.observability import health
from mcphost.transport.django_requests import slots
from mcphost.transport.options import options
from mcphost.transport.redis_wakeups import Wakeups


def shared_layer() -> Any | None:
    """The channel layer, if it reaches other processes (Redis); else None."""
    return get_channel_layer() if settings.MCPHOST_REDIS else None


def forget_options(**_: Any) -> None:
    options.cache_clear()
    slots.cache_clear()


setting_changed.connect(forget_options)

wakeups = Wakeups(shared_layer)
loop.set_waker(wakeups.send)
health.warn("redis", wakeups.problem)
