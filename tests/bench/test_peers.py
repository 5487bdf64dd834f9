"""The measured peers: their lockfiles, and the check of their whole responses."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bench import environment, peers, verify
from bench.load import Target
from bench.processes import ROOT

RESULT: dict[str, Any] = {
    "resultType": "complete",
    "content": [{"type": "text", "text": "hello 1"}],
}
GOOD: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "result": RESULT,
}


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the server answers from now on."""
    answer: dict[str, Any] = {}

    def post(_target: Target, _call: Mapping[str, Any]) -> tuple[int, bytes]:
        return 200, json.dumps(answer).encode()

    monkeypatch.setattr(verify, "_post", post)
    return answer


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"isError": False, "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "bench"}}},
        {"structuredContent": {"result": "hello 1"}},
    ],
)
def test_a_server_that_echoes_correctly_is_measured(
    answers: dict[str, Any], more: dict[str, Any]
) -> None:
    answers.update(GOOD, result={**RESULT, **more})
    verify.verify(Target("http://127.0.0.1:1/mcp"))


@pytest.mark.parametrize(
    "result",
    [
        {"content": [{"type": "text", "text": "hello 1"}]},
        {"resultType": "complete", "content": [{"type": "text", "text": "hello 2"}]},
        {**RESULT, "content": RESULT["content"] * 2},
        {**RESULT, "isError": True},
        {**RESULT, "structuredContent": {"result": "hello 2"}},
        {**RESULT, "unknown": 1},
    ],
    ids=["earlier revision", "another text", "twice", "error", "another value", "unknown member"],
)
def test_a_server_with_a_wrong_result_is_not_measured(
    answers: dict[str, Any], result: dict[str, Any]
) -> None:
    answers.update(GOOD, result=result)
    with pytest.raises(verify.WrongAnswerError, match="the same again"):
        verify.verify(Target("http://127.0.0.1:1/mcp"))


def test_both_servers_of_the_python_sdk_have_the_same_version() -> None:
    locks = ((ROOT / "requirements-dev.lock"), (environment.LOCKS / "sdk.lock"))
    found = {re.findall(r"^mcp==(\S+)", lock.read_text(), re.MULTILINE)[0] for lock in locks}
    assert len(found) == 1
    assert found.pop().startswith(peers.SDK.label.removeprefix("MCP Python SDK ").split(",")[0])


NODE_PROJECTS = (
    peers.SERVERS / "typescript",
    ROOT / "tests" / "e2e" / "node",
    ROOT / "tests" / "e2e" / "node_services",
    ROOT / "editor",
)


@pytest.mark.parametrize("project", NODE_PROJECTS, ids=lambda project: project.name)
def test_no_lock_names_a_registry_and_every_version_is_exact(project: Path) -> None:
    lock = json.loads((project / "package-lock.json").read_text())
    assert [name for name, package in lock["packages"].items() if "resolved" in package] == []
    wanted = json.loads((project / "package.json").read_text())["dependencies"]
    assert [one for one in wanted.values() if not re.fullmatch(r"[0-9]+(\.[0-9]+){2}", one)] == []
