"""The example of SEP-2322 ("Multi-Round with requestState (Azure DevOps)"), message by message.

The texts are the SEP's. What it leaves out of requests because it was written before the revision is
added: `_meta`, with the version and the client's capabilities. What it leaves out of results stays
unmentioned: `resultType`, `_meta`, and a state where a client may do without.
"""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.e2e import raw
from tests.e2e.processes import Server

CALL = {
    "name": "update_work_item",
    "arguments": {"workItemId": 4522, "fields": {"System.State": "Resolved"}},
}
STATE = "eyJyZXNvbHV0aW9uIjoiRHVwbGljYXRlIn0..."


def _request(id: int, **params: Any) -> Mapping[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {**CALL, **params}}


def _asks(
    id: int, key: str, message: str, name: str, schema: Any, **more: Any
) -> Mapping[str, Any]:
    properties = {"type": "object", "properties": {name: schema}, "required": [name]}
    params = {"message": message, "requestedSchema": properties}
    question = {key: {"method": "elicitation/create", "params": params}}
    return {"jsonrpc": "2.0", "id": id, "result": {"inputRequests": question, **more}}


def _accepts(key: str, **content: Any) -> Mapping[str, Any]:
    return {key: {"action": "accept", "content": content}}


MESSAGES: tuple[tuple[str, Mapping[str, Any], Mapping[str, Any]], ...] = (
    (
        "the client calls the tool, and is asked for a resolution",
        _request(1),
        _asks(
            1,
            "resolution",
            "Resolving Bug #4522 requires a resolution. How was this bug resolved?",
            "resolution",
            {
                "type": "string",
                "enum": ["Fixed", "Won't Fix", "Duplicate", "By Design"],
                "description": "Resolution type for this bug",
            },
        ),
    ),
    (
        "the client retries with the resolution and no state, and is asked for the original",
        _request(2, inputResponses=_accepts("resolution", resolution="Duplicate")),
        _asks(
            2,
            "duplicate_of",
            "Since this is a duplicate, which work item is the original?",
            "duplicateOfId",
            {"type": "number", "description": "Work item ID of the original bug"},
            requestState=STATE,
        ),
    ),
    (
        "the client retries with the original and the state, and the bug is resolved",
        _request(
            3, inputResponses=_accepts("duplicate_of", duplicateOfId=4301), requestState=STATE
        ),
        {
            "jsonrpc": "2.0",
            "id": 3,
            "result": {
                "content": [
                    {
                        "type": "text",
                        "text": "Bug #4522 resolved as Duplicate of Bug #4301. State set to Resolved and duplicate link created.",
                    }
                ],
                "isError": False,
            },
        },
    ),
)
"""What happens, what the client sends, what the server answers."""

META = raw.call("", {}, **{f"{raw.PREFIX}clientCapabilities": {"elicitation": {"form": {}}}})[
    "params"
]["_meta"]


@pytest.mark.requirement("mrtr.sep-2322-example")
def test_the_example_of_the_sep_works_as_written(any_server: Server) -> None:
    state = STATE
    for what, sent, expected in MESSAGES:
        written = json.loads(json.dumps(sent).replace(STATE, state))
        written["params"]["_meta"] = META
        reply = raw.post(any_server, written, any_server.token)
        assert reply.status == 200, (what, reply.body)
        state = reply.message["result"].get("requestState", state)
        assert _as_written(reply.message, expected, state), (what, reply.body)


def _as_written(said: Any, expected: Any, state: str) -> bool:
    """Whether all that the SEP has is there, at any depth; `isError` is false where it is left out."""
    if isinstance(expected, Mapping):
        return all(
            _as_written(said.get(key, False if key == "isError" else None), value, state)
            for key, value in expected.items()
        )
    if isinstance(expected, list):
        return len(said) == len(expected) and all(
            _as_written(one, other, state) for one, other in zip(said, expected, strict=True)
        )
    return said == (state if expected == STATE else expected)
