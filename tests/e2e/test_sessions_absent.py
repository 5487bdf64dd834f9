"""Calls of sessions that reach a node without their code, while nodes are upgraded one by one."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest

from tests.e2e import asking, processes
from tests.e2e.asking import PUBLISH, accept, at
from tests.e2e.nodes import Service
from tests.e2e.sessions import Session, request

PATIENCE = 90
NEWER = """
from pydantic import BaseModel
from mcphost.sdk import Context, ToolAnnotations, tool

class Number(BaseModel):
    number: int

@tool
async def brand_new(ctx: Context) -> str:
    \"\"\"Asks for a number.\"\"\"
    return f"number {(await ctx.elicit('number', 'Which number?', Number)).number}"

@tool
async def acts(ctx: Context) -> str:
    \"\"\"Acts and asks nothing.\"\"\"
    return "done"

@tool(annotations=ToolAnnotations(read_only_hint=True))
async def reads(ctx: Context) -> str:
    \"\"\"Changes nothing.\"\"\"
    return "read"
"""


@pytest.fixture(scope="module")
def service(machine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Two nodes, of which only the first has the newest tools."""
    folder = tmp_path_factory.mktemp("absent")
    with asking.service(folder) as two:
        tools = folder / "newer"
        shutil.copytree(folder / "tools", tools, ignore=shutil.ignore_patterns("__pycache__"))
        (tools / "newer.py").write_text(NEWER)
        two.first.stop()
        two.first.change(MCPHOST_TOOLS_PATH=str(tools))
        two.first.start()
        _publish(two, tools)
        yield two


def _publish(service: Service, tools: Path) -> None:
    settings = {**service.settings, "MCPHOST_TOOLS_PATH": str(tools)}
    script = PUBLISH.replace("interpreter.", "newer.")
    published = processes.manage(service.first.home, "shell", "-c", script, env=settings)
    assert published.returncode == 0, published.stderr


@pytest.fixture
async def session(service: Service) -> AsyncIterator[Session]:
    async with httpx2.AsyncClient(timeout=PATIENCE) as http, asyncio.timeout(PATIENCE):
        session = await Session.begun(http, at(service, service.second))
        await _listed(session, service)
        yield session


async def _listed(session: Session, service: Service) -> None:
    """Wait until the second node knows of the first one's functions."""
    while True:
        reply = await session.post(at(service, service.second), request("tools/list", {}))
        if any(tool["name"] == "brand_new" for tool in reply.json()["result"]["tools"]):
            return
        await asyncio.sleep(0.1)  # between looks at another process; nothing it does could wake us


@asynccontextmanager
async def absent(service: Service) -> AsyncIterator[None]:
    """The node with the newest tools is told to stop, and comes back afterwards."""
    await asyncio.to_thread(service.first.stop)
    try:
        yield
    finally:
        await asyncio.to_thread(service.first.start)


async def test_a_first_call_is_answered_by_the_node_that_lacks_its_code(
    service: Service, session: Session
) -> None:
    second = at(service, service.second)
    async with session.calling(second, "acts", {}) as stream:
        assert await stream.text() == "done"
    async with session.calling(second, "brand_new", {}) as stream:
        question = await stream.question()
        await session.answer(second, question, accept(number=7))
        assert await stream.text() == "number 7"


async def test_a_read_only_call_is_refused_for_a_retry(service: Service, session: Session) -> None:
    first, second = at(service, service.first), at(service, service.second)
    reading = {"name": "reads", "arguments": {}}
    refused = (await session.post(second, request("tools/call", reading))).json()["error"]
    assert (refused["code"], refused["data"]) == (-32603, {"retryAfter": 2})
    assert "does not have the code" in refused["message"]
    repeated = (await session.post(first, request("tools/call", reading))).json()["result"]
    assert repeated["content"][0]["text"] == "read"


async def test_a_call_whose_node_stops_goes_on_when_one_with_its_code_starts(
    service: Service, session: Session
) -> None:
    first, second = at(service, service.first), at(service, service.second)
    async with session.calling(first, "brand_new", {}) as stream:
        question = await stream.question()
        last_id = stream.last_id
        async with absent(service):
            await session.answer(second, question, accept(number=8))
    async with session.resuming(second, last_id) as stream:
        assert await stream.text() == "number 8"


async def test_a_call_whose_code_does_not_come_back_fails_in_words(
    service: Service, session: Session
) -> None:
    async with (
        absent(service),
        session.calling(at(service, service.second), "brand_new", {}) as stream,
    ):
        message = await stream.message()
    words = "This is published, but no running server process has its code"
    assert message["error"]["message"] == words
