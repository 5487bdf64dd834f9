"""The requests and responses of docs/tasks.md, as they are written there."""

import asyncio
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cast import Cast
from tests.mcp import Reply, begun, send
from tests.serving.tasks.task_client import PATIENCE, Watching, did

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "tasks.md").read_text()
MODERN, OF_SESSIONS = PAGE.split("\n## For clients of 2025-11-25\n")
"""What the page tells clients of each revision."""
BLOCK = re.compile(r"^```(http|json)\n(.*?)^```", re.MULTILINE | re.DOTALL)
ID = "5f0c9a4e1b7d4c38a2e6d90b13f7c845"
"""The id of the task in the page."""


def _request(block: str) -> tuple[str, dict[str, str], dict[str, Any]]:
    """The path, headers and body of a request."""
    head, _, body = block.partition("\n\n")
    first, *lines = head.splitlines()
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    return first.removeprefix("POST "), headers, json.loads(body)


def as_documented(told: Any, actual: Any) -> bool:
    """Whether all that the page tells is there; times and ids only have to be there."""
    if isinstance(told, Mapping):
        return isinstance(actual, Mapping) and all(
            name in actual and (name.endswith("At") or as_documented(each, actual[name]))
            for name, each in told.items()
        )
    if isinstance(told, list):
        return isinstance(actual, list) and list(map(as_documented, told, actual)) == [True] * len(
            actual
        )
    return bool(told == actual)


async def _send(token: str, block: str) -> Reply:
    path, headers, body = _request(block)
    assert path == "/t/acme/mcp"
    for name, value in (("mcp-method", body["method"]), ("mcp-protocol-version", "2026-07-28")):
        assert headers[name] == value
    assert headers["authorization"] == "Bearer TOKEN"
    sent = {name: headers[name] for name in headers if name.startswith("mcp-")}
    return await send("acme", body, token, sent)


async def test_the_documented_requests_get_the_documented_responses(tasks: Cast) -> None:
    blocks = BLOCK.findall(MODERN)
    assert [language for language, _ in blocks[::2]] == ["http"] * (len(blocks) // 2)
    assert [language for language, _ in blocks[1::2]] == ["json"] * (len(blocks) // 2)
    id, methods = ID, []
    for (_, asked), (_, told) in zip(blocks[::2], blocks[1::2], strict=True):
        method = _request(asked)[2]["method"]
        methods.append(method)
        expected = json.loads(told.replace(ID, id))
        if method == "subscriptions/listen":
            await _listened(tasks, asked.replace(ID, id), expected)
            continue
        async with asyncio.timeout(PATIENCE):
            reply = await _send(tasks.owner.mcp_token, asked.replace(ID, id))
            if method == "tools/call":
                id = reply.result["taskId"]
                expected = json.loads(told.replace(ID, id))
            while method == "tasks/get" and not as_documented(expected, reply.last):
                await asyncio.sleep(0.01)
                reply = await _send(tasks.owner.mcp_token, asked.replace(ID, id))
        assert as_documented(expected, reply.last), reply.last
    assert methods == [
        "tools/call",
        "tasks/get",
        "subscriptions/listen",
        "tasks/update",
        "tasks/get",
        "tasks/cancel",
    ]
    assert did() == ["the door red"]


async def _listened(tasks: Cast, asked: str, expected: Mapping[str, Any]) -> None:
    """The first notification after the acknowledgement must be as documented."""
    _, headers, body = _request(asked)
    sent = {name: headers[name] for name in headers if name.startswith("mcp-")}
    async with begun("acme", body, tasks.owner.mcp_token, sent) as exchange:
        message = await exchange.message()
        assert message["method"] == "notifications/subscriptions/acknowledged", message
        params = await Watching(exchange, message["params"]["notifications"]).told()
    assert expected["method"] == "notifications/tasks"
    assert as_documented(expected["params"], params), params
