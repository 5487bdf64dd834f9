"""What the feed tells goes to those who listen and to those who may have lost their authority.

Settings that are kept are read anew when one is changed.
"""

from typing import Any

from django.core.signals import setting_changed

from mcphost.calls import questions, sessions, streamed, streams
from mcphost.calls.links import LINK
from mcphost.catalogue.updates import LIST, UPDATED
from mcphost.feed.loop import loop
from mcphost.feed.nodes import heartbeat
from mcphost.protocol.subscriptions import LISTS
from mcphost.serving.authority import presences
from mcphost.serving.drain import on_cut, on_drain
from mcphost.serving.legacy import adoption, calls, outgoing
from mcphost.serving.legacy.cancelling import cancellations
from mcphost.serving.legacy.readers import following
from mcphost.serving.legacy.standing import UNHEARD, standings
from mcphost.serving.listeners import listeners
from mcphost.serving.options import options
from mcphost.serving.waiting import waiters


def forget_options(**_: Any) -> None:
    options.cache_clear()


setting_changed.connect(forget_options)

# After the rooms below: they have dropped by then what they remembered.
for what in (*LISTS, LIST, UPDATED):
    loop.subscribe(what, listeners.heard)
for what in ("token", "member", "tenant"):
    loop.subscribe(what, presences.heard)
loop.subscribe(LINK, waiters.heard)
loop.subscribe(streamed.CALLED_OFF, cancellations.heard)
loop.subscribe(sessions.ENDED, cancellations.ended)
loop.subscribe(streamed.RELEASED, adoption.heard)
loop.subscribe(streams.NEWS, waiters.heard)
loop.subscribe(questions.NEWS, waiters.heard)
loop.subscribe(streams.FOLLOWED, outgoing.heard)
loop.on_gap(outgoing.heard_nothing)
for what, taker in (
    (sessions.OPENED, standings.opened),
    (sessions.CLOSED, standings.closed),
    (sessions.TOPICS, standings.turned),
    (sessions.ENDED, standings.ended),
    (UNHEARD.what, standings.unheard),
):
    listeners.in_its_place(what, taker)
    loop.subscribe(what, listeners.heard)
loop.on_gap(waiters.heard_nothing)
loop.on_gap(standings.heard_nothing)
loop.on_gap(listeners.heard_nothing)
loop.on_gap(presences.heard_nothing)
on_drain(listeners.end_all)
on_drain(heartbeat.drain)
on_drain(following.send_all_away)
on_drain(calls.let_all_go)
on_cut(presences.end_all)
