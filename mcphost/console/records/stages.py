"""Words for the stages of input requests: the ways in which they end."""

from collections.abc import Mapping
from typing import Final

from mcphost.audit.timeline import STOPPED
from mcphost.console.templatetags.questions import outcome
from mcphost.listings.stages import EXPIRING, OVERDUE, RESPONDED, STAGES, stage_count

NONE_ENDED: Final = "\N{EN DASH}"

STAGE_WORDS: Final[Mapping[str, str]] = {
    **{stage: stage for stage in STAGES},
    "answered": outcome("accept"),
    "stopped": outcome(STOPPED),
    "never": "no answer",
}
"""What each stage is called on pages."""
QUESTION_STATES: Final[Mapping[str, str]] = {
    "open": "open",
    OVERDUE: "overdue",
    EXPIRING: "expires within ten minutes",
    RESPONDED: "with an answer",
    **{stage: label for stage, label in STAGE_WORDS.items() if stage != "open"},
}
"""By what the list of questions is filtered: a stage, those that are open for longer than the target time of
their tool, those of clients that expire soon, or those with any answer."""


def accepted_share(input_requests: int, endings: Mapping[str, int]) -> str:
    """Return which part of the questions that have ended was accepted; `NONE_ENDED` if none has."""
    ended = input_requests - stage_count(endings, "open")
    return f"{100 * stage_count(endings, 'answered') / ended:.0f}%" if ended > 0 else NONE_ENDED
