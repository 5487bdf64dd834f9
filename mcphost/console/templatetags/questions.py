"""What is asked of people and how we know what they answered, in words."""

from collections.abc import Mapping

from django import template
from django.utils.safestring import SafeString

from mcphost.audit import timelines
from mcphost.audit.records import ANSWER_REFUSED, MESSAGE_REFUSED, STATE_REFUSED
from mcphost.audit.timelines import Question
from mcphost.audit.views import UNKNOWN, EntryView
from mcphost.console.templatetags.console import badge, toned
from mcphost.sealing.tokens import Reason

register = template.Library()

_FORM = ("form", "list_alt")
_KINDS: Mapping[tuple[str, str], tuple[str, str]] = {
    ("elicitation/create", ""): _FORM,
    ("elicitation/create", "form"): _FORM,
    ("elicitation/create", "url"): ("page to open", "open_in_new"),
    ("sampling/createMessage", ""): ("text of a model", "psychology"),
    ("roots/list", ""): ("folders", "folder_open"),
}
_EVIDENCE: Mapping[str, str] = {
    "client-asserted": "the client says so, we did not see who answered",
    "observed": "nobody answered in time, as we saw ourselves",
    "signed-in": "given on our own page by somebody signed in",
    "playground": "given in the playground by somebody signed in",
}
_FATES: Mapping[str, tuple[str, str]] = {
    timelines.OPEN: ("info", "waits for an answer"),
    timelines.EXPIRED: ("warn", "expired"),
    timelines.REPEATED: ("warn", "not answered"),
    timelines.NEVER: ("warn", "never answered"),
    timelines.INVALID: ("bad", "did not fit"),
    timelines.UNASKED: ("warn", "unasked"),
    UNKNOWN: ("warn", "outcome unknown"),
    "accept": ("good", "accepted"),
    "received": ("good", "answered"),
    "decline": ("warn", "declined"),
    "cancel": ("warn", "cancelled"),
    "failed": ("bad", "failed"),
}
_REFUSED: Mapping[str, str] = {
    Reason.TOO_LARGE: "larger than any of ours",
    Reason.MALFORMED: "no token of ours",
    Reason.NOT_CANONICAL: "spelled in another way than ours are",
    Reason.UNKNOWN_KEY: "sealed with a key that is not there, or no longer",
    Reason.NOT_AUTHENTIC: "changed, or of another tenant, or no state",
    Reason.BAD_PADDING: "filled up in another way than ours are",
    Reason.BAD_SALT: "of a tenant whose salt was destroyed",
    Reason.BAD_RANDOMNESS: "made in another way than ours are",
    "other-answers": "other answers were taken before",
    "claim-forgotten": "its time is over",
    "answered": "the question had its answer before",
    "late": "nobody waited for it any more",
    "not-asked": "no question of ours has that id",
    "foreign": "the question was put to somebody else",
    "over": "its call had ended",
    "not-its-stream": "it was to leave on the stream of something else",
}
_WHAT_REFUSED: Mapping[str, tuple[str, str]] = {
    STATE_REFUSED: ("state", "A state was refused"),
    ANSWER_REFUSED: ("answer", "An answer was not taken"),
    MESSAGE_REFUSED: ("message", "A message was kept from leaving"),
}
_TOLD: Mapping[str, str] = {
    STATE_REFUSED: "The client was told only that the state is not valid.",
    ANSWER_REFUSED: "The client was told nothing: an answer is always accepted.",
    MESSAGE_REFUSED: "The client was sent nothing.",
}
_DELIVERIES: Mapping[str, str] = {
    "modern": "answers come with the client's next request",
    "legacy": "answers come on the call's own stream",
    "task": "answers come to a task",
    "playground": "tried in the playground",
    "hosted": "answered on a page of ours",
}


@register.filter
def fate(word: str) -> SafeString:
    """What became of a question, an answer, a round or a call."""
    known = _FATES.get(word)
    return badge(word) if known is None else toned(*known)


@register.filter
def tally(answers: Mapping[str, int]) -> str:
    """How many answers there are of each outcome."""
    said = ((count, _FATES[word][1] if word in _FATES else word) for word, count in answers.items())
    return ", ".join(f"{count} {word}" for count, word in said)


@register.filter
def asks_for(entry: EntryView) -> str:
    """What kind of answer a question is after."""
    return _kind(entry)[0]


@register.filter
def icon_of(entry: EntryView) -> str:
    """The icon of that kind."""
    return _kind(entry)[1]


def _kind(entry: EntryView) -> tuple[str, str]:
    method, mode = str(entry.facts.get("method", "")), str(entry.facts.get("mode", ""))
    return _KINDS.get((method, mode), (method, "contact_support"))


@register.filter
def evidence(entry: EntryView) -> str:
    """How we know of an answer; the bare word where it is a new one."""
    word = str(entry.facts.get("evidence", ""))
    return _EVIDENCE.get(word, word)


@register.filter
def why_refused(entry: EntryView) -> str:
    """The true reason why something was refused."""
    return _REFUSED.get(entry.reason, entry.reason)


@register.filter
def what_refused(entry: EntryView) -> str:
    """What was refused, in a word."""
    return _WHAT_REFUSED[entry.action][0]


@register.filter
def that_refused(entry: EntryView) -> str:
    """What happened, as the beginning of a sentence."""
    key = timelines.key_of(entry)
    if key and entry.action == ANSWER_REFUSED:
        return f"An answer to {key} was not taken"
    return _WHAT_REFUSED[entry.action][1]


@register.filter
def told_of_refusal(entry: EntryView) -> str:
    """What the client knows of it."""
    return _TOLD[entry.action]


@register.filter
def delivery(word: str) -> str:
    """How answers come back."""
    return _DELIVERIES.get(word, word)


@register.filter
def that_are(questions: tuple[Question, ...], fate: str) -> list[Question]:
    """The questions with a fate."""
    return [each for each in questions if each.fate == fate]
