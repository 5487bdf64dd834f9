"""The official Python client listens, over each server we support, to what other processes do."""

import asyncio

from mcp.client.subscriptions import ToolsListChanged

from tests.e2e.processes import Server, manage
from tests.e2e.test_python_client import connected, every_tool

_MOVE = """
from mcphost.audit.records import Actor
from mcphost.catalogue import selectors, services
from mcphost.tenants.models import Tenant
rows = {{row.name: row for row in selectors.primitives(Tenant.objects.filter(slug="demo"))}}
if rows["picture"].state != "{after}":
    services.{verb}(rows["picture"].id, Actor.system("a test"))
"""
DISABLE = _MOVE.format(verb="disable", after="disabled")
ENABLE = _MOVE.format(verb="enable", after="published")


async def command(server: Server, *arguments: str) -> str:
    """Run a command beside the server, in a process of its own; what it printed."""
    done = await asyncio.to_thread(manage, server.home, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_a_change_made_by_a_command_is_heard_and_then_seen(any_server: Server) -> None:
    await command(any_server, "shell", "-c", ENABLE)  # an attempt before may have stopped midway
    async with (
        connected(any_server.url, any_server.token) as client,
        client.listen(tools_list_changed=True) as heard,
    ):
        assert heard.honored.tools_list_changed
        for move, there in ((DISABLE, False), (ENABLE, True)):
            await command(any_server, "shell", "-c", move)
            assert await anext(heard) == ToolsListChanged()
            assert ("picture" in await every_tool(client)) is there


async def test_a_revoked_token_ends_what_listens_gracefully(any_server: Server) -> None:
    wanted = ("--tenant", "demo", "--owner", "admin", "--name", "short")
    issued = await command(any_server, "token", "issue", *wanted)
    token = next(word for word in issued.split() if word.startswith("mcph_"))
    async with (
        connected(any_server.url, token) as client,
        client.listen(tools_list_changed=True) as heard,
    ):
        await command(any_server, "token", "revoke", token.split("_")[1])
        assert [event async for event in heard] == []
