"""Wake-ups go out when this process has announced something, and come in from the others.

Settings that are kept are read anew when one is changed.
"""

from typing import Any

from channels.layers import get_channel_layer
from django.conf import settings
from django.core.signals import setting_changed

from mcphost.feed.loop import loop
from mcphost.observability import health
from mcphost.serving import lifecycle
from mcphost.transport.options import options
from mcphost.transport.wakeups import Wakeups


def shared_layer() -> Any | None:
    """The channel layer, where it reaches other processes."""
    return get_channel_layer() if settings.MCPHOST_REDIS else None


def forget_options(**_: Any) -> None:
    options.cache_clear()


setting_changed.connect(forget_options)

wakeups = Wakeups(shared_layer)
loop.set_waker(wakeups.send)
lifecycle.accompany(wakeups)
health.warn("redis", wakeups.problem)
