"""The official Python client, over each server we support."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import (
    INVALID_PARAMS,
    ElicitRequestParams,
    ElicitResult,
    TextContent,
)

from tests.e2e.processes import Server

REVISION = "2026-07-28"
PATIENCE = 30
DEMO_TOOLS = {
    "add",
    "arrange_meeting",
    "countdown",
    "deploy",
    "echo",
    "picture",
    "send_note",
    "sign_off",
    "slow_report",
    "summarize",
    "update_work_item",
    "weather",
}


@asynccontextmanager
async def connected(
    url: str, token: str | None, seconds: float = PATIENCE, **options: Any
) -> AsyncIterator[Client]:
    """A client. What is done with it may take `seconds`."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        asyncio.timeout(seconds),
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http,
    ):
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, read_timeout_seconds=PATIENCE, **options) as client:
            yield client


async def every_tool(client: Client) -> list[str]:
    names: list[str] = []
    cursor = None
    while True:
        page = await client.list_tools(cursor=cursor)
        names += [tool.name for tool in page.tools]
        cursor = page.next_cursor
        if cursor is None:
            return names


def text_of(result: Any) -> str:
    block = result.content[0]
    assert isinstance(block, TextContent)
    return block.text


@pytest.mark.requirement("pages.complete")
async def test_the_python_client_discovers_the_server_lists_and_calls(any_server: Server) -> None:
    steps: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    async with connected(any_server.url, any_server.token) as client:
        assert client.protocol_version == REVISION
        assert client.server_info is not None
        assert client.server_info.name
        assert client.server_capabilities.tools is not None
        names = await every_tool(client)
        assert set(names) >= DEMO_TOOLS
        assert len(names) == len(set(names))
        assert names == await every_tool(client)
        result = await client.call_tool("echo", {"text": "grüße, 世界"})
        assert not result.is_error
        assert text_of(result) == "grüße, 世界"
        result = await client.call_tool("countdown", {"start": 3}, progress_callback=note)
        assert not result.is_error
        assert len(steps) >= 3
        assert steps == sorted(steps)
        result = await client.call_tool("echo", {"text": 7})
        assert result.is_error
        assert "text" in text_of(result)
        with pytest.raises(MCPError) as caught:
            await client.call_tool("no_such_tool", {})
        assert caught.value.code == INVALID_PARAMS
        assert "no_such_tool" in caught.value.message


async def test_the_python_client_of_a_legacy_revision_answers_an_elicitation(
    any_server: Server,
) -> None:
    async def ask(_: Any, params: ElicitRequestParams) -> ElicitResult:
        assert "Deploy shop v2" in params.message
        return ElicitResult(action="accept", content={"deploy": True})

    async with connected(
        any_server.url, any_server.token, mode="legacy", elicitation_callback=ask
    ) as client:
        assert client.protocol_version == "2025-11-25"
        result = await client.call_tool("deploy", {"service": "shop", "version": "v2"})
        assert text_of(result) == "shop v2 is deployed."
