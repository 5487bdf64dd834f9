"""Empty members of messages: which count as absent, and which are kept."""

from typing import Any

import orjson
import pytest

from mcphost.protocol.empty_members import drop_empty


def dropped(message: Any) -> Any:
    parsed = orjson.loads(orjson.dumps(message))
    drop_empty(parsed)
    return parsed


@pytest.mark.parametrize(
    ("message", "plain"),
    [
        ({"method": "ping", "params": None}, {"method": "ping"}),
        ({"method": "ping", "params": []}, {"method": "ping", "params": {}}),
        ({"method": "notifications/x", "id": None}, {"method": "notifications/x"}),
        ({"id": 1, "method": None, "result": {"a": 1}}, {"id": 1, "result": {"a": 1}}),
        ({"id": 1, "result": {"a": 1}, "error": None}, {"id": 1, "result": {"a": 1}}),
        ({"id": 1, "result": None, "error": {"code": 1}}, {"id": 1, "error": {"code": 1}}),
        ({"id": 1, "result": None, "error": None}, {"id": 1, "result": {}}),
        ({"id": 1, "result": None}, {"id": 1, "result": {}}),
        ({"id": 1, "result": []}, {"id": 1, "result": {}}),
        (
            {"id": 1, "result": {"action": "accept", "content": []}},
            {"id": 1, "result": {"action": "accept", "content": {}}},
        ),
        ([{"method": "ping", "params": None}, 5], [{"method": "ping"}, 5]),
    ],
)
def test_an_empty_optional_member_of_a_message_counts_as_absent(message: Any, plain: Any) -> None:
    assert dropped(message) == plain


@pytest.mark.parametrize(
    "message",
    [
        {"id": None, "method": "ping"},
        {"id": 1, "method": None},
        {"id": 1, "error": None},
        {"id": 1, "result": {"role": "assistant", "content": []}},
        {"id": 1, "method": "tools/call", "params": {"name": None}},
        {"id": 1, "method": "tools/call", "params": {"arguments": {"a": None, "b": []}}},
        {"id": 1, "method": "tools/call", "params": {"inputResponses": {"a": None}}},
        {"id": 1, "method": "tasks/get", "params": {"taskId": None}},
        None,
        [None, []],
    ],
)
def test_required_or_meaningful_empty_members_are_kept(message: Any) -> None:
    assert dropped(message) == message
