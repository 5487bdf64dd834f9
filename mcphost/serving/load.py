"""Load shedding: decide whether calls should leave this process (it is overloaded, or lacks a function), with the
gauges of lag, shares and free processes.

A call leaves only when a step has just been recorded, once, and only while another process serves
that is not overloaded itself (SEP-2322, Load Shedding). Two signals:

- `lag`: the event loop has run what was due later than MCPHOST_SHED_LAG_SECONDS, again and again;
- `share`: the caller's or the tenant's share of concurrent calls is over (`serving.limits.is_over`).
"""

from collections.abc import Callable, Mapping
from typing import Final

from mcphost.audit.writer.writer import writer
from mcphost.feed.nodes import heartbeat
from mcphost.observability.loop_watch import LoopLag
from mcphost.serving import limits
from mcphost.serving.context import Incoming
from mcphost.serving.options import options

DRAIN: Final = "drain"
LAG: Final = "lag"
SHARE: Final = "share"
ABSENT_FUNCTION: Final = "absent"
"""The process lacks the function of the call's primitive (`serving.execution.missing_functions`)."""

lag: Final = LoopLag(lambda: options().shed_lag_seconds)


def reason_to_leave(incoming: Incoming) -> str:
    """Why a call that has just recorded a step should continue elsewhere; empty if it should not.

    With a full writer's queue no call leaves: its records could not be written.
    """
    if not heartbeat.free() or writer.refuse_new():
        return ""
    if lag.is_over():
        return LAG
    return SHARE if limits.is_over(incoming) else ""


GAUGES: Final[Mapping[str, Callable[[], float]]] = {
    "loop_lag_seconds": lag.seconds,
    "loop_lag_limit_seconds": lambda: options().shed_lag_seconds,
    "overloaded": lag.is_over,
    "shares_over": limits.shares_over,
    "shares_limit_seconds": lambda: options().shed_share_seconds,
    "processes_free": heartbeat.free,
}
"""The probes of the metrics about load, by metric."""
