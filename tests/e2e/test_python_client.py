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
    ImageContent,
    LoggingMessageNotificationParams,
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
async def connected(url: str, token: str | None, **options: Any) -> AsyncIterator[Client]:
    """A client that found out by itself which revision the server speaks."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        asyncio.timeout(PATIENCE),
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http,
    ):
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, read_timeout_seconds=PATIENCE, **options) as client:
            yield client


async def every_tool(client: Client) -> list[str]:
    """The names of all tools, page by page."""
    names: list[str] = []
    cursor = None
    while True:
        page = await client.list_tools(cursor=cursor)
        names += [tool.name for tool in page.tools]
        cursor = page.next_cursor
        if cursor is None:
            return names


def text_of(result: Any) -> str:
    """The text of a result's first block."""
    block = result.content[0]
    assert isinstance(block, TextContent)
    return block.text


@pytest.mark.requirement("pages.complete")
async def test_a_client_finds_out_who_serves_and_lists_and_calls(any_server: Server) -> None:
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


async def test_log_messages_come_only_when_asked_for(server: Server) -> None:
    lines: list[LoggingMessageNotificationParams] = []

    async def note(params: LoggingMessageNotificationParams) -> None:
        lines.append(params)

    async with connected(server.url, server.token, logging_callback=note) as client:
        await client.call_tool("countdown", {"start": 2})
    assert lines == []
    async with connected(
        server.url, server.token, logging_callback=note, log_level="debug"
    ) as client:
        await client.call_tool("countdown", {"start": 2})
    assert lines


@pytest.mark.requirement("http.related-notifications")
async def test_calls_side_by_side_get_their_own_progress_and_result(server: Server) -> None:
    """A tool that blocks its thread holds up nobody else."""
    async with connected(server.url, server.token) as client:

        async def count(start: int) -> tuple[set[float | None], bool]:
            totals: set[float | None] = set()

            async def note(progress: float, total: float | None, message: str | None) -> None:
                totals.add(total)

            result = await client.call_tool("countdown", {"start": start}, progress_callback=note)
            return totals, bool(result.is_error)

        outcomes = await asyncio.gather(*(count(start) for start in (2, 3, 4)))
        slow = asyncio.create_task(
            client.call_tool("slow_report", {"title": "Slow", "sections": 4})
        )
        result = await client.call_tool("echo", {"text": "meanwhile"})
        assert text_of(result) == "meanwhile"
        assert not slow.done()
        assert not (await slow).is_error
    assert outcomes == [({2.0}, False), ({3.0}, False), ({4.0}, False)]


async def test_results_of_each_sort_pass_the_clients_own_validation(server: Server) -> None:
    async with connected(server.url, server.token) as client:
        await every_tool(client)  # the client validates against what it has listed
        result = await client.call_tool("weather", {"city": "Oslo"})
        assert not result.is_error
        assert isinstance(result.structured_content, dict)
        result = await client.call_tool("picture", {})
        images = [block for block in result.content if isinstance(block, ImageContent)]
        assert images
        assert images[0].mime_type.startswith("image/")
        result = await client.call_tool("send_note", {"recipient": "Ada", "note": "hello"})
        assert not result.is_error


async def test_a_client_of_an_older_revision_is_asked_by_each_server(any_server: Server) -> None:
    async def ask(_: Any, params: ElicitRequestParams) -> ElicitResult:
        assert "Deploy shop v2" in params.message
        return ElicitResult(action="accept", content={"deploy": True})

    async with connected(
        any_server.url, any_server.token, mode="legacy", elicitation_callback=ask
    ) as client:
        assert client.protocol_version == "2025-11-25"
        result = await client.call_tool("deploy", {"service": "shop", "version": "v2"})
        assert text_of(result) == "shop v2 is deployed."


async def test_without_a_good_token_a_client_does_not_connect(any_server: Server) -> None:
    for token in (None, "wrong", "mcph_aaaaaaaaaaaa_bbbbbbbbbbbb_cccccc"):
        async with connected(any_server.url, token, mode=REVISION) as client:
            with pytest.raises(MCPError):
                await client.list_tools()
