"""The official TypeScript client, over each server we support."""

from tests.e2e.node_client import NodeClient
from tests.e2e.processes import Server
from tests.e2e.test_python_client import DEMO_TOOLS, REVISION

INVALID_PARAMS = -32602


def test_the_typescript_client_lists_calls_and_gets_error_messages(
    node: NodeClient, server: Server
) -> None:
    walk = node.ask("walk", server.url, server.token)
    assert walk["revision"] == REVISION
    assert walk["server"]["name"]
    assert "tools" in walk["capabilities"]
    names = [tool["name"] for tool in walk["tools"]]
    assert set(names) >= DEMO_TOOLS
    assert len(names) == len(set(names))
    assert walk["echo"]["result"]["content"] == [{"type": "text", "text": "grüße, 世界"}]
    steps = [step["progress"] for step in walk["progress"]]
    assert len(steps) >= 3
    assert steps == sorted(steps)
    assert not walk["countdown"]["result"].get("isError", False)
    assert isinstance(walk["weather"]["result"]["structuredContent"], dict), "as it validates"
    assert walk["invalid"]["result"]["isError"] is True
    assert "text" in walk["invalid"]["result"]["content"][0]["text"]
    assert walk["unknown"]["error"]["code"] == INVALID_PARAMS
    assert "no_such_tool" in walk["unknown"]["error"]["message"]


def test_the_typescript_client_connects_with_a_token_in_both_eras(
    node: NodeClient, any_server: Server
) -> None:
    for era in ("connect", "legacy"):
        assert node.ask(era, any_server.url, any_server.token) == {"connected": True}
