"""The official TypeScript client, over each server we support."""

from typing import Any

import pytest

from tests.e2e.node_client import NodeClient
from tests.e2e.processes import Server
from tests.e2e.test_python_client import DEMO_TOOLS, REVISION

INVALID_PARAMS = -32602


@pytest.fixture(scope="session")
def walk(node: NodeClient, server: Server) -> dict[str, Any]:
    """What one client saw on its way through everything."""
    return node.ask("walk", server.url, server.token)


def test_it_speaks_this_revision_with_a_server_that_says_who_it_is(walk: dict[str, Any]) -> None:
    assert walk["revision"] == REVISION
    assert walk["server"]["name"]
    assert "tools" in walk["capabilities"]


def test_it_lists_every_page_of_tools(walk: dict[str, Any]) -> None:
    names = [tool["name"] for tool in walk["tools"]]
    assert set(names) >= DEMO_TOOLS
    assert len(names) == len(set(names))


def test_echo_says_the_same_again(walk: dict[str, Any]) -> None:
    assert walk["echo"]["result"]["content"] == [{"type": "text", "text": "grüße, 世界"}]


def test_progress_arrives_in_order(walk: dict[str, Any]) -> None:
    steps = [step["progress"] for step in walk["progress"]]
    assert len(steps) >= 3
    assert steps == sorted(steps)
    assert not walk["countdown"]["result"].get("isError", False)


def test_structured_content_passes_the_clients_own_validation(walk: dict[str, Any]) -> None:
    assert isinstance(walk["weather"]["result"]["structuredContent"], dict)


def test_invalid_arguments_give_an_error_result_that_names_the_field(walk: dict[str, Any]) -> None:
    result = walk["invalid"]["result"]
    assert result["isError"] is True
    assert "text" in result["content"][0]["text"]


def test_an_unknown_tool_is_refused_by_name(walk: dict[str, Any]) -> None:
    error = walk["unknown"]["error"]
    assert error["code"] == INVALID_PARAMS
    assert "no_such_tool" in error["message"]


@pytest.mark.parametrize("token", [None, "wrong"])
def test_without_a_good_token_it_is_refused_with_401(
    node: NodeClient, any_server: Server, token: str | None
) -> None:
    outcome = node.ask("connect", any_server.url, token)
    assert "401" in str(outcome["refused"]) or "Unauthorized" in outcome["refused"]["name"]


def test_with_a_token_it_connects_to_each_server(node: NodeClient, any_server: Server) -> None:
    assert node.ask("connect", any_server.url, any_server.token) == {"connected": True}


def test_a_client_of_an_older_revision_connects_to_each_server(
    node: NodeClient, any_server: Server
) -> None:
    assert node.ask("legacy", any_server.url, any_server.token) == {"connected": True}
