"""The MCP Inspector's command line, sent to another process with every request."""

import json
from pathlib import Path

import pytest

from tests.e2e import inspector
from tests.e2e.demo_responses import HOW, OF_WHICH, RESOLVE, RESOLVED
from tests.e2e.nodes import Service
from tests.e2e.test_older_clients import CALLS
from tests.e2e.test_python_client import DEMO_TOOLS


def test_single_inspector_commands_list_and_call_in_separate_sessions(
    two_nodes: Service, node: object, tmp_path: Path
) -> None:
    listed = inspector.once(two_nodes.server, tmp_path, "tools/list")
    assert {tool["name"] for tool in listed["tools"]} >= DEMO_TOOLS
    for tool, arguments, text in CALLS[:2]:
        how = ("--tool-name", tool, "--tool-args-json", json.dumps(arguments))
        result = inspector.once(two_nodes.server, tmp_path, "tools/call", *how)
        assert text in result["content"][0]["text"]
    assert two_nodes.proxy.failures == []


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_kept_inspector_connection_lists_calls_and_answers_input_requests(
    two_nodes: Service, node: object, tmp_path: Path, era: str
) -> None:
    with inspector.connected(two_nodes.server, tmp_path, era) as connection:
        assert set(connection.list_tools()) >= DEMO_TOOLS
        for tool, arguments, text in CALLS[:2]:
            assert text in connection.call(tool, arguments)["content"][0]["text"]
        first = connection.call(RESOLVE["call"], RESOLVE["arguments"])
        assert first["elicitationPending"]["message"] == HOW
        second = connection.answer(first, '{"resolution": "Duplicate"}')
        assert second["elicitationPending"]["message"] == OF_WHICH
        result = connection.answer(second, '{"duplicateOfId": 4301}')
        assert result["content"][0]["text"] == RESOLVED
    assert two_nodes.proxy.failures == []
