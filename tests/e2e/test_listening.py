"""The official Python client listens to what other processes do."""

import asyncio

from mcp.client.subscriptions import ToolsListChanged

from tests.e2e.processes import COMMAND_SECONDS, Server, manage
from tests.e2e.test_python_client import PATIENCE, connected, every_tool

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
    done = await asyncio.to_thread(manage, server.home, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_a_listening_client_is_notified_of_a_change_by_a_command_and_sees_it(
    daphne: Server,
) -> None:
    await command(daphne, "shell", "-c", ENABLE)  # an attempt before may have stopped midway
    async with (
        connected(daphne.url, daphne.token, PATIENCE + 2 * COMMAND_SECONDS) as client,
        client.listen(tools_list_changed=True) as heard,
    ):
        assert heard.honored.tools_list_changed
        for move, there in ((DISABLE, False), (ENABLE, True)):
            await command(daphne, "shell", "-c", move)
            assert await asyncio.wait_for(anext(heard), PATIENCE) == ToolsListChanged()
            assert ("picture" in await every_tool(client)) is there
