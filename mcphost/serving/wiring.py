"""Subscribe the registries of this package to the change log and to the drain.

Also clear the cached options when a setting is changed.
"""

from typing import Any

from django.core.signals import setting_changed

from mcphost.calls import cancelled, claims, questions, session_calls, sessions, streams
from mcphost.calls.links import LINK
from mcphost.catalogue.updates import LIST, UPDATED
from mcphost.feed.loop import loop
from mcphost.feed.nodes import heartbeat
from mcphost.protocol.subscriptions import LISTS
from mcphost.serving import load
from mcphost.serving.events import waiters
from mcphost.serving.execution.cancelled_calls import cancelled_calls
from mcphost.serving.execution.released_rounds import released_rounds
from mcphost.serving.legacy import call, replay
from mcphost.serving.legacy.cancellation import cancellations
from mcphost.serving.legacy.get_stream import SESSIONS_GAP, get_streams
from mcphost.serving.legacy.stream import following, live
from mcphost.serving.legacy.takeover import takeovers
from mcphost.serving.options import options
from mcphost.serving.revocation import presences
from mcphost.serving.shutdown import on_cut, on_drain
from mcphost.serving.subscriptions.registry import listeners
from mcphost.tasks import changes


def forget_options(**_: Any) -> None:
    options.cache_clear()


setting_changed.connect(forget_options)

# After the lower packages, which have then dropped their cached values.
for change_name in (*LISTS, LIST, UPDATED):
    loop.subscribe(change_name, listeners.on_change)
for change_name in ("token", "member", "tenant"):
    loop.subscribe(change_name, presences.on_change)
loop.subscribe(LINK, waiters.changed)
loop.subscribe(cancelled.CANCELLED, cancelled_calls.on_change)
loop.subscribe(cancelled.CANCELLED, waiters.changed)
loop.subscribe(cancelled.CANCELLED, takeovers.on_change)
loop.on_gap(cancelled_calls.on_gap)
loop.subscribe(session_calls.CANCELLED, cancellations.on_change)
loop.subscribe(sessions.ENDED, cancellations.ended)
loop.subscribe(session_calls.RELEASED, takeovers.on_change)
loop.subscribe(streams.CHANGE_NAME, waiters.changed)
loop.subscribe(questions.CHANGE_NAME, waiters.changed)
loop.subscribe(streams.FOLLOWED, live.on_change)
loop.on_gap(live.on_gap)
for change_name, handler in (
    (sessions.OPENED, get_streams.opened),
    (sessions.CLOSED, get_streams.closed),
    (sessions.TOPICS, get_streams.topics_changed),
    (sessions.ENDED, get_streams.ended),
    (SESSIONS_GAP.kind, get_streams.gap),
):
    listeners.register_handler(change_name, handler)
    loop.subscribe(change_name, listeners.on_change)
loop.subscribe(changes.CHANGED, waiters.changed)
loop.subscribe(claims.ROUND_LEFT, released_rounds.on_left)
loop.on_gap(waiters.gap)
loop.on_gap(get_streams.on_gap)
loop.on_gap(listeners.on_gap)
loop.on_gap(presences.on_gap)
heartbeat.on_functions(listeners.on_gap)  # after the catalogue's caches
heartbeat.on_functions(released_rounds.find_rounds)
heartbeat.on_functions(takeovers.retry_deferred)
following.replay = replay.replay
heartbeat.overloaded = load.lag.is_over
on_drain(listeners.end_all)
on_drain(following.send_all_away)
on_drain(call.release_all)
on_drain(waiters.drain)
on_cut(released_rounds.cut)
on_cut(presences.end_all)
