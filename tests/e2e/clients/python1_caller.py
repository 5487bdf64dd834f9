"""The official Python client before 2.0, in an environment of its own. See this folder's docstring for
what it reads and writes.

It asks for the revision that it is told to: that is how a client before its own looks to a server. With a
"command" it starts that and talks to it on stdio: a bridge, which has the server's URL and token.
"""

import asyncio
import inspect
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import person
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client

try:
    import keychain
    from mcp.client.streamable_http import streamablehttp_client
except ImportError:  # before 1.8 there is only stdio that the server can be reached by
    streamablehttp_client = None

DUMPED: dict[str, Any] = {"mode": "json", "by_alias": True, "exclude_none": True}
CAN_ASK = hasattr(types, "ElicitResult")


async def ask(_: Any, params: Any) -> Any:
    return types.ElicitResult(**await person.answer(params.model_dump(**DUMPED)))


async def sample(_: Any, params: Any) -> types.CreateMessageResult:
    return types.CreateMessageResult(**await person.answer(params.model_dump(**DUMPED)))


async def every_tool(session: ClientSession) -> list[str]:
    if "cursor" not in inspect.signature(session.list_tools).parameters:
        return [tool.name for tool in (await session.list_tools()).tools]
    names: list[str] = []
    cursor = None
    while True:
        page = await session.list_tools(cursor=cursor)
        names += [tool.name for tool in page.tools]
        cursor = page.nextCursor
        if cursor is None:
            return names


@asynccontextmanager
async def connected(
    url: str, token: str, tokens: str, command: list[str] | None
) -> AsyncIterator[Any]:
    """The streams to the server, or to a bridge to it."""
    if command:
        async with stdio_client(
            StdioServerParameters(command=command[0], args=command[1:])
        ) as streams:
            yield streams
    else:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        auth = keychain.provider(url, tokens) if tokens else None
        async with streamablehttp_client(url, headers=headers, auth=auth) as (reading, writing, _):
            yield reading, writing


async def main(
    url: str,
    token: str = "",
    revision: str = "",
    tokens: str = "",
    command: list[str] | None = None,
) -> None:
    if revision:
        types.LATEST_PROTOCOL_VERSION = revision
    listening: dict[str, Any] = {
        "message_handler": person.overhear,
        "logging_callback": person.note_log,
        "sampling_callback": sample,
    }
    if CAN_ASK:
        listening["elicitation_callback"] = ask
    async with (
        connected(url, token, tokens, command) as (reading, writing),
        ClientSession(reading, writing, **listening) as session,
    ):
        met = await session.initialize()

        async def note(progress: float, total: float | None, message: str | None = None) -> None:
            person.note(progress)

        follows = "progress_callback" in inspect.signature(session.call_tool).parameters
        following: dict[str, Any] = {"progress_callback": note} if follows else {}

        async def call(tool: str, arguments: dict[str, Any]) -> Any:
            return (await session.call_tool(tool, arguments, **following)).model_dump(**DUMPED)

        async def read(uri: str) -> Any:
            return (await session.read_resource(uri)).model_dump(**DUMPED)

        async def get(prompt: str, arguments: dict[str, str]) -> Any:
            return (await session.get_prompt(prompt, arguments)).model_dump(**DUMPED)

        tools = await every_tool(session)
        person.tell(met={"revision": str(met.protocolVersion), "tools": tools})
        await person.call_what_is_wanted(call, read, get)


async def start() -> None:
    await main(**await person.hear())


if __name__ == "__main__":
    asyncio.run(start())
