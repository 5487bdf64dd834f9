"""Real clients on the session-based revisions, sent to another process with every request."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.callers import command
from tests.e2e.client_process import Talk, conversing
from tests.e2e.demo_responses import ASKING, WAYS, ask_everything, resolve
from tests.e2e.nodes import Service
from tests.e2e.test_python_client import DEMO_TOOLS

NEWEST, MIDDLE, OLDEST = "2025-11-25", "2025-06-18", "2025-03-26"
SPEAK: Mapping[str, tuple[str, ...]] = {
    "python": (NEWEST,),
    "fastmcp": (NEWEST,),
    "typescript": (NEWEST,),
    "sdk": (MIDDLE, OLDEST),
    "mcp-1.30.0": (NEWEST, MIDDLE),
    "mcp-1.12.4": (MIDDLE,),
    "mcp-1.9.4": (OLDEST,),
}
PAIRS = [(name, revision) for name, revisions in SPEAK.items() for revision in revisions]

CALLS: tuple[tuple[str, Mapping[str, Any], str], ...] = (
    ("add", {"a": 2, "b": 3}, "5"),
    ("countdown", {"start": 2, "seconds": 0.05}, "Lift-off!"),
    ("echo", {"text": "grüße, 世界"}, "grüße, 世界"),
    ("picture", {}, "A square"),
    ("send_note", {"recipient": "Ada", "note": "hello"}, "note-"),
    ("slow_report", {"title": "Slow", "sections": 2, "seconds": 0.05}, "Section 2 of 2"),
    ("weather", {"city": "Oslo"}, "humidity"),
)

CANNOT: Mapping[str, Sequence[str]] = {
    NEWEST: (),
    MIDDLE: ("sign_off",),
    OLDEST: [tool for tool, *_ in ASKING if tool != "summarize"],
}
"""Which tools ask what a revision has no words for."""


@contextmanager
def meeting(service: Service, folder: Path, name: str, revision: str) -> Iterator[Talk]:
    server, proxy = service.server, service.proxy
    before = dict(proxy.served)
    asked = {"url": server.url, "token": server.token, "revision": revision}
    with conversing(command(name), folder, **asked) as talk:
        met = talk.hear("met")
        assert met["revision"] == revision
        assert set(met["tools"]) >= DEMO_TOOLS
        yield talk
    assert proxy.failures == []
    for node in (service.first, service.second):
        assert proxy.served[node.port] > before.get(node.port, 0)


def called(talk: Talk, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    talk.say({"call": tool, "arguments": arguments})
    result: dict[str, Any] = talk.hear("done")
    return result


@pytest.mark.parametrize(("name", "revision"), PAIRS)
def test_a_legacy_client_lists_calls_and_gets_input_requests_on_both_processes(
    two_nodes: Service, node: object, tmp_path: Path, name: str, revision: str
) -> None:
    with meeting(two_nodes, tmp_path, name, revision) as talk:
        call_what_asks_nothing(talk, revision)
        for way in WAYS if revision != OLDEST else ():
            resolve(talk, way)
        ask_everything(talk, two_nodes.admin(), CANNOT[revision])
        call_what_cannot_ask(talk, revision)


def call_what_asks_nothing(talk: Talk, revision: str) -> None:
    results = {tool: called(talk, tool, arguments) for tool, arguments, _ in CALLS}
    invalid = called(talk, "echo", {"text": 7})
    for tool, _, text in CALLS:
        assert not results[tool].get("isError")
        assert text in results[tool]["content"][0]["text"]
    assert results["countdown"]["progress"] == [0, 1, 2]
    assert results["picture"]["content"][1]["mimeType"] == "image/png"
    assert ("structuredContent" in results["weather"]) is (revision != OLDEST)
    assert invalid["isError"]
    assert "text" in invalid["content"][0]["text"]


def call_what_cannot_ask(talk: Talk, revision: str) -> None:
    for tool, arguments, *_ in ASKING:
        if tool in CANNOT[revision]:
            result = called(talk, tool, arguments)
            assert result["isError"]
            assert "needs a client with the capability" in result["content"][0]["text"]


def test_legacy_clients_get_list_changed_notifications_on_their_open_stream(
    two_nodes: Service, node: object, tmp_path: Path
) -> None:
    with ExitStack() as ends:
        talks = []
        for name in ("python", "sdk", "mcp-1.9.4"):
            revisions = SPEAK[name]
            folder = tmp_path / name
            folder.mkdir()
            talks.append(ends.enter_context(meeting(two_nodes, folder, name, revisions[0])))
        for verb in ("disable", "enable"):
            two_nodes.change(verb)
            heard = [talk.hear("heard") for talk in talks]
            assert heard == ["notifications/tools/list_changed"] * len(talks)
