"""Template filters that put input requests, responses, evidence, outcomes and tasks into words."""

from collections.abc import Mapping

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from mcphost.audit import timeline
from mcphost.audit.entries import UNKNOWN, EntryView
from mcphost.audit.question_list import RecordedQuestion
from mcphost.audit.records import (
    ANSWER_REFUSED,
    CALL_CANCELLED,
    MESSAGE_REFUSED,
    STATE_REFUSED,
    TASK_CANCELLED,
    TASK_RETRIED,
)
from mcphost.audit.timeline import TimelineQuestion
from mcphost.calls.states import QuestionState
from mcphost.console.templatetags.console import badge, toned
from mcphost.runtime.outcomes import FailureKind
from mcphost.sealing.tokens import Reason
from mcphost.serving.execution import audit_records
from mcphost.tasks import listing
from mcphost.tasks.states import TaskState

register = template.Library()

_FORM = ("form", "list_alt")
_KINDS: Mapping[tuple[str, str], tuple[str, str]] = {
    ("elicitation/create", ""): _FORM,
    ("elicitation/create", "form"): _FORM,
    ("elicitation/create", "url"): ("URL to open", "open_in_new"),
    ("sampling/createMessage", ""): ("model response (sampling)", "psychology"),
    ("roots/list", ""): ("folders (roots)", "folder_open"),
}
_EVIDENCE: Mapping[str, str] = {
    "client-asserted": "reported by the client; this server did not see who answered",
    "observed": "this server received no answer in time",
    "signed-in": "given on a page of this server by a signed-in user",
    "playground": "given in a trial, by the user who ran it",
}
_SHORT_EVIDENCE: Mapping[str, str] = {
    "client-asserted": "says the client",
    "observed": "no answer in time",
    "signed-in": "signed in on this server",
    "playground": "in a trial",
}
_OUTCOMES: Mapping[str, tuple[str, str]] = {
    timeline.OPEN: ("info", "waiting for an answer"),
    timeline.EXPIRED: ("warn", "expired"),
    timeline.LOST: ("bad", "lost"),
    timeline.REPEATED: ("warn", "no answer"),
    timeline.STOPPED: ("stopped", "cancelled by an operator"),
    timeline.NEVER: ("warn", "never answered"),
    timeline.INVALID: ("bad", "invalid"),
    timeline.UNASKED: ("warn", "not requested"),
    UNKNOWN: ("warn", "outcome unknown"),
    audit_records.COMPLETE: ("good", "complete"),
    audit_records.INPUT_REQUIRED: ("info", "asked a question"),
    audit_records.YIELDED: ("info", "moved to another process"),
    audit_records.DEFERRED: ("info", "became a task"),
    audit_records.CANCELLED: ("plain", "cancelled"),
    timeline.DECLINED: ("declined", "turned down"),
    FailureKind.TOOL_ERROR: ("bad", "tool error"),
    FailureKind.INVALID_ARGUMENTS: ("bad", "invalid arguments"),
    FailureKind.INVALID_RESULT: ("bad", "invalid result"),
    FailureKind.TIMED_OUT: ("bad", "timed out"),
    FailureKind.OVERLOADED: ("bad", "server overloaded"),
    FailureKind.CAPABILITY_MISSING: ("bad", "client capability missing"),
    FailureKind.ASKED_TOO_OFTEN: ("bad", "too many questions"),
    FailureKind.JOURNAL_TOO_LARGE: ("bad", "journal too large"),
    FailureKind.CRASHED: ("bad", "crashed"),
    TaskState.WORKING: ("info", "running as a task"),
    listing.WAITING: ("info", "task waiting for an answer"),
    "accept": ("good", "accepted"),
    "received": ("good", "answered"),
    "decline": ("declined", "declined"),
    "cancel": ("plain", "cancelled"),
    "failed": ("bad", "failed"),
}
_REFUSED: Mapping[str, str] = {
    Reason.TOO_LARGE: "larger than a valid token",
    Reason.MALFORMED: "not a token of this server",
    Reason.NOT_CANONICAL: "not in the canonical encoding",
    Reason.UNKNOWN_KEY: "sealed with an unknown or retired key",
    Reason.NOT_AUTHENTIC: "modified, or sealed for another tenant or purpose",
    Reason.BAD_PADDING: "invalid padding",
    Reason.BAD_SALT: "the tenant's salt was destroyed",
    Reason.BAD_RANDOMNESS: "invalid random bytes",
    "other-answers": "other answers were accepted before",
    "claim-forgotten": "it has expired",
    "answered": "the question already has an answer",
    "late": "the call no longer waited for it",
    "not-asked": "no question has that id",
    "foreign": "the question was sent to another caller",
    "over": "its call had ended",
    "borrowed": "the context of another call was used here",
    "lent": "another call used the context of this one",
    "outside": "code outside of any call used the context of this one",
    "not-its-stream": "its stream belongs to another call or request",
}
_STATUSES: Mapping[str, tuple[str, str]] = {
    TaskState.WORKING: ("info", "working"),
    listing.WAITING: ("info", "waiting for an answer"),
    TaskState.COMPLETED: ("good", "completed"),
    TaskState.FAILED: ("bad", "failed"),
    listing.FAILED_RECENTLY: ("bad", "failed in the last day"),
    TaskState.CANCELLED: ("plain", "cancelled"),
}
_ANSWERS: Mapping[str, tuple[str, str]] = {
    QuestionState.OPEN: ("info", "open"),
    QuestionState.ANSWERED: ("good", "answered"),
    QuestionState.EXPIRED: ("warn", "expired"),
}
_ACTS: Mapping[str, str] = {
    TASK_CANCELLED: "The task was cancelled",
    TASK_RETRIED: "The task was retried",
    CALL_CANCELLED: "The call was cancelled",
}
_WHAT_REFUSED: Mapping[str, str] = {
    STATE_REFUSED: "A request state was rejected",
    ANSWER_REFUSED: "An answer was rejected",
    MESSAGE_REFUSED: "A message was blocked",
}
_CLIENT_NOTICES: Mapping[str, str] = {
    STATE_REFUSED: "The client was told only that the state is invalid.",
    ANSWER_REFUSED: "The client was not told: its request is always acknowledged.",
    MESSAGE_REFUSED: "Nothing was sent to the client.",
}
_SHORT_DELIVERIES: Mapping[str, str] = {
    "modern": "stateless",
    "legacy": "session",
    "task": "task",
    "playground": "trial",
    "hosted": "page",
}
_DELIVERIES: Mapping[str, str] = {
    "modern": "answers come with the client's next request",
    "legacy": "answers come in the session while the call is in progress",
    "task": "as a task, which takes the answers",
    "playground": "in a trial, answers come from the user who runs it",
    "hosted": "answers come from a page of this server",
}


_ACTIONS: Mapping[str, str] = {
    "question.asked": "Question sent",
    "answer.received": "Answer received",
    "answer.repeated": "Answer repeated",
    STATE_REFUSED: "State rejected",
    ANSWER_REFUSED: "Answer rejected",
    MESSAGE_REFUSED: "Message blocked",
    "connection.made": "App connected",
    "connection.consented": "App allowed",
    "connection.ended": "App disconnected",
    "member.appointed": "Owner appointed",
    "member.set": "Role set",
    "member.scopes_set": "Scopes of a member set",
    "user.password_set": "Password set",
    "signin.failed": "Sign-in failed",
    "signin.locked": "Sign-in locked",
    "signin.slowed": "Sign-in slowed",
    "key.rewrapped": "Keys wrapped again",
    "secrets.created": "Keys of the tenant created",
}
"""The names of actions that their words do not make by themselves."""


@register.filter
def action_name(action: str) -> str:
    """An action of the audit log in words, such as "Tool published" for `tool.published`."""
    words = action.replace(".", " ").replace("_", " ")
    return _ACTIONS.get(action, words[:1].upper() + words[1:])


@register.filter
def delivered(delivery_name: str) -> str:
    """How a call is delivered, in a word or two."""
    return _SHORT_DELIVERIES.get(delivery_name, delivery_name)


@register.filter
def outcome_badge(status: str) -> SafeString:
    """The status of a question, an answer, a round or a call, as a badge."""
    tone_and_text = _OUTCOMES.get(status)
    return badge(status) if tone_and_text is None else toned(*tone_and_text)


@register.filter
def question_badge(status: str) -> SafeString:
    """The status of a question, as a badge. A question is open; what waits for its answer is the call."""
    return toned("info", "open") if status == timeline.OPEN else outcome_badge(status)


@register.filter
def outcome(status: str) -> str:
    """The same status in words, without a badge."""
    tone_and_text = _OUTCOMES.get(status)
    return status.replace("_", " ") if tone_and_text is None else tone_and_text[1]


@register.filter
def task_status(status: str) -> SafeString:
    """The status of a task, as a badge."""
    return toned(*_STATUSES[status])


@register.filter
def status_name(status: str) -> str:
    """The status of a task, in words."""
    return _STATUSES[status][1]


@register.filter
def answer_state(state: str) -> SafeString:
    """The state of a task's question, as a badge."""
    return toned(*_ANSWERS[state])


@register.filter
def that_was_done(entry: EntryView) -> str:
    """What a user did to a call, or the client to its task, as the beginning of a sentence."""
    return _ACTS[entry.action]


@register.filter
def tally(answers: Mapping[str, int]) -> str:
    """The number of answers of each outcome."""
    counts = (
        (count, _OUTCOMES[status][1] if status in _OUTCOMES else status)
        for status, count in answers.items()
    )
    return ", ".join(f"{count} {text}" for count, text in counts)


@register.filter
def asks_for(entry: EntryView) -> str:
    """The kind of input that a question requests."""
    return _kind(entry)[0]


@register.filter
def icon_of(entry: EntryView) -> str:
    """The icon of that kind."""
    return _kind(entry)[1]


@register.filter
def question_title(key: str) -> str:
    """The author's key of a question as its title: `approve_refund` is "Approve refund"."""
    words = " ".join(key.replace("_", " ").replace("-", " ").split())
    return words[:1].upper() + words[1:] or "Question"


@register.filter
def question_name(key: str) -> SafeString:
    """The same in bold, with the key itself as its tooltip."""
    return format_html('<b title="{}">{}</b>', key, question_title(key))


@register.filter
def version_number(label: str) -> str:
    """A version without its digest: `2+2e6258f9` is "v2", `draft+a710ec63` is "draft"."""
    number = label.partition("+")[0]
    return f"v{number}" if number.isdecimal() else number


@register.filter
def asks_for_what(question: RecordedQuestion) -> str:
    """The same as `asks_for`, of a row of the list of questions."""
    return _KINDS.get((question.method, question.mode), (question.method, ""))[0]


@register.filter
def known_by(evidence_name: str) -> str:
    """How we know of an answer, in a few words."""
    return _SHORT_EVIDENCE.get(evidence_name, evidence_name)


@register.filter
def known_because(evidence_name: str) -> str:
    """How we know of an answer, in full."""
    return _EVIDENCE.get(evidence_name, evidence_name)


def _kind(entry: EntryView) -> tuple[str, str]:
    method, mode = str(entry.facts.get("method", "")), str(entry.facts.get("mode", ""))
    return _KINDS.get((method, mode), (method, "contact_support"))


@register.filter
def evidence(entry: EntryView) -> str:
    """How we know of an answer; an unknown kind of evidence is shown as it is."""
    kind = str(entry.facts.get("evidence", ""))
    return _EVIDENCE.get(kind, kind)


@register.filter
def why_refused(entry: EntryView) -> str:
    """The true reason of a refusal, which the client is not told."""
    return _REFUSED.get(entry.reason, entry.reason)


@register.filter
def that_refused(entry: EntryView) -> str:
    """What happened, as the beginning of a sentence."""
    key = timeline.key_of(entry)
    if key and entry.action == ANSWER_REFUSED:
        return f"An answer to “{question_title(key)}” was rejected"
    return _WHAT_REFUSED[entry.action]


@register.filter
def told_of_refusal(entry: EntryView) -> str:
    """What the client was told of a refusal."""
    return _CLIENT_NOTICES[entry.action]


@register.filter
def delivery(delivery_name: str) -> str:
    """How the answers of a call come back."""
    return _DELIVERIES.get(delivery_name, delivery_name)


@register.filter
def that_are(questions: tuple[TimelineQuestion, ...], outcome: str) -> list[TimelineQuestion]:
    """The questions that have the given status."""
    return [question for question in questions if question.outcome == outcome]
