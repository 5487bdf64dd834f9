"""How input requests end, as pages count it."""

from collections.abc import Mapping
from typing import Final

from mcphost.audit.timeline import STOPPED
from mcphost.console.templatetags.questions import outcome

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
"""The stages, with the endings that each counts. Together they are all that was asked."""
STAGE_WORDS: Final[Mapping[str, str]] = {
    **{stage: stage for stage in STAGES},
    "answered": outcome("accept"),
    "stopped": outcome(STOPPED),
    "never": "no answer",
}
"""What each stage is called on pages."""

OVERDUE: Final = "overdue"
RESPONDED: Final = "responded"
RESPONDED_STATES: Final = ("accept", "received", "decline", "cancel", "invalid", "failed")
"""How questions with an answer ended, whatever it was: the time to answer is measured of these."""
QUESTION_STATES: Final[Mapping[str, str]] = {
    "open": "open",
    OVERDUE: "overdue",
    RESPONDED: "with an answer",
    **{stage: label for stage, label in STAGE_WORDS.items() if stage != "open"},
}
"""By what the list of questions is filtered: a stage, those that are open for longer than the target time of
their tool, or those with any answer."""
