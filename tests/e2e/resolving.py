"""A bug is resolved through a real client, by a person who is asked how."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.e2e.asking import accept
from tests.e2e.talking import Talk

RESOLVE = {
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
    """Go one of the ways to its end; how many questions were answered."""
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
    """The text of a call that has ended, and whether it is an error."""
    result = talk.hear("done")
    return result["content"][0]["text"], bool(result.get("isError"))
