"""What a person at a real client does who is asked things by the tools of the demo."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from tests.e2e.admin import Admin
from tests.e2e.client_process import Talk
from tests.e2e.handmade_calls import accept

RESOLVE: Mapping[str, Any] = {
    "call": "update_work_item",
    "arguments": {"workItemId": 4522, "fields": {"System.State": "Resolved"}},
}
HOW = "Resolving Bug #4522 requires a resolution. How was this bug resolved?"
OF_WHICH = "Since this is a duplicate, which work item is the original?"
RESOLVED = (
    "Bug #4522 resolved as Duplicate of Bug #4301. "
    "State set to Resolved and duplicate link created."
)
DUPLICATE, ORIGINAL = accept(resolution="Duplicate"), accept(duplicateOfId=4301)

Answered = Sequence[tuple[str, Mapping[str, Any]]]
WAYS: Mapping[str, tuple[Answered, str]] = {
    "accept": (((HOW, DUPLICATE), (OF_WHICH, ORIGINAL)), RESOLVED),
    "decline": (((HOW, DUPLICATE), (OF_WHICH, {"action": "decline"})), "declined"),
    "cancel": (((HOW, {"action": "cancel"}),), "dismissed"),
}
"""What is answered to which question, and what the call ends with."""


def resolve(talk: Talk, way: str) -> int:
    answered, text = WAYS[way]
    talk.say(RESOLVE)
    for message, answer in answered:
        assert talk.hear("asked")["message"] == message
        talk.say(answer)
    said, is_error = ended(talk)
    assert text in said
    assert is_error is (way != "accept")
    return len(answered)


def ended(talk: Talk) -> tuple[str, bool]:
    result = talk.hear("done")
    return result["content"][0]["text"], bool(result.get("isError"))


SUMMARY = {"role": "assistant", "content": {"type": "text", "text": "Short."}, "model": "m"}
ANSWERS: Mapping[str, Mapping[str, Any]] = {
    HOW: accept(resolution="Fixed"),
    "Deploy shop v2?": accept(deploy=True),
    "When shall we talk about lunch?": accept(day="Friday", hour=12),
    "And in which room?": accept(room="Ada"),
}
ASKING: tuple[tuple[str, Mapping[str, Any], int, str], ...] = (
    (
        RESOLVE["call"],
        RESOLVE["arguments"],
        1,
        "Bug #4522 resolved as Fixed. State set to Resolved.",
    ),
    ("deploy", {"service": "shop", "version": "v2"}, 1, "shop v2 is deployed."),
    ("arrange_meeting", {"topic": "lunch"}, 2, "lunch: Friday, 12:00, in Ada."),
    ("summarize", {"text": "Once upon a time."}, 1, "Short."),
    ("sign_off", {"release": "v1"}, 1, "v1 is signed off."),
)
"""The tools of the demo that ask, how often each does, and what its call ends with."""


def ask_everything(talk: Talk, person: Admin, but: Sequence[str] = ()) -> None:
    for tool, arguments, questions, text in ASKING:
        if tool in but:
            continue
        talk.say({"call": tool, "arguments": arguments})
        for _ in range(questions):
            talk.say(answer_to(talk.hear("asked"), person))
        assert ended(talk) == (text, False)


def answer_to(question: Mapping[str, Any], person: Admin) -> Mapping[str, Any]:
    """What a person, or their model, answers; a page that they are sent to is confirmed first."""
    if "messages" in question:
        return SUMMARY
    if question.get("mode") == "url":
        person.confirm(urlsplit(question["url"]).path)
        return {"action": "accept"}
    return ANSWERS[question["message"]]
