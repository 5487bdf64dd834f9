"""What the feed tells goes to those who listen and to those who may have lost their authority.

Settings that are kept are read anew when one is changed.
"""

from typing import Any

from django.core.signals import setting_changed

from mcphost.catalogue.updates import LIST, UPDATED
from mcphost.feed.loop import loop
from mcphost.feed.nodes import heartbeat
from mcphost.protocol.subscriptions import LISTS
from mcphost.serving.authority import presences
from mcphost.serving.drain import on_cut, on_drain
from mcphost.serving.listeners import listeners
from mcphost.serving.options import options


def forget_options(**_: Any) -> None:
    options.cache_clear()


setting_changed.connect(forget_options)

# After the rooms below: they have dropped by then what they remembered.
for what in (*LISTS, LIST, UPDATED):
    loop.subscribe(what, listeners.heard)
for what in ("token", "member", "tenant"):
    loop.subscribe(what, presences.heard)
loop.on_gap(listeners.heard_nothing)
loop.on_gap(presences.heard_nothing)
on_drain(listeners.end_all)
on_drain(heartbeat.drain)
on_cut(presences.end_all)
