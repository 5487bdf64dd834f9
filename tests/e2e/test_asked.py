"""Real clients, and a person at each who is asked: every leg of a call goes to another process."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.asking import accept
from tests.e2e.callers import MODERN, command
from tests.e2e.nodes import Service
from tests.e2e.talking import Talk, conversing
from tests.e2e.test_python_client import DEMO_TOOLS, REVISION

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


def ended(talk: Talk) -> tuple[str, bool]:
    """The text of a call that has ended, and whether it is an error."""
    result = talk.hear("done")
    return result["content"][0]["text"], bool(result.get("isError"))


@pytest.mark.parametrize("name", MODERN)
def test_a_client_is_asked_both_questions_and_each_retry_goes_to_the_other_process(
    asked: Service, node: object, name: str, tmp_path: Path
) -> None:
    server, called = asked.server, asked.proxy.called
    with conversing(command(name), tmp_path, url=server.url, token=server.token) as talk:
        met = talk.hear("met")
        assert met["revision"] == REVISION
        assert set(met["tools"]) >= DEMO_TOOLS
        for way, (answered, text) in WAYS.items():
            called.clear()
            talk.say(RESOLVE)
            for message, answer in answered:
                assert talk.hear("asked")["message"] == message
                talk.say(answer)
            said, is_error = ended(talk)
            assert text in said
            assert is_error is (way != "accept")
            assert len(called) == len(answered) + 1
            assert all(one != next for one, next in pairwise(called))
    assert asked.proxy.failures == []


def test_people_think_through_a_rotation_of_keys_at_every_client(
    asked: Service, node: object, tmp_path: Path
) -> None:
    server = asked.server
    with ExitStack() as ends:
        talks = []
        for name in MODERN:
            folder = tmp_path / name
            folder.mkdir()
            client = conversing(command(name), folder, url=server.url, token=server.token)
            talks.append(ends.enter_context(client))
        for talk in talks:
            talk.hear("met")
            talk.say(RESOLVE)
            talk.hear("asked")
        assert "seals now" in asked.manage("keys", "rotate")
        for talk in talks:
            talk.say(DUPLICATE)
            assert talk.hear("asked")["message"] == OF_WHICH
            talk.say(ORIGINAL)
            assert ended(talk) == (RESOLVED, False)
    assert asked.proxy.failures == []
