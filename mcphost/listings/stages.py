"""The stages of input requests: groups of their states, as lists filter and figures count them."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

STAGES: Final[Mapping[str, tuple[str, ...]]] = {
    "answered": ("accept", "received"),
    "declined": ("decline",),
    "cancelled": ("cancel",),
    "invalid": ("invalid",),
    "expired": ("expired",),
    "stopped": ("stopped",),
    "never": ("never", "repeated", "lost", "failed"),
    "open": ("open",),
}
"""The stages, with the states that each groups. Together they are all that was asked."""
OVERDUE: Final = "overdue"
"""Those that are open for longer than the target time of their tool."""
EXPIRING: Final = "expiring"
EXPIRES_SOON: Final = timedelta(minutes=10)
"""Those of clients that are open and expire within this time."""
RESPONDED: Final = "responded"
"""Those with any response: the time to respond is measured of these."""
RESPONDED_STATES: Final = ("accept", "received", "decline", "cancel", "invalid", "failed")


def stage_count(counts: Mapping[str, int], stage: str) -> int:
    """Return how many input requests are in a stage, from their counts by state."""
    return sum(counts.get(state, 0) for state in STAGES[stage])
