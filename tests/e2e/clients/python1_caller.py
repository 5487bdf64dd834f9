"""The official Python client before 2.0, in an environment of its own. See this folder's docstring for
what it reads and writes.

It asks for the revision that it is told to: that is how a client before its own looks to a server.
"""

import asyncio
from typing import Any

import person
from mcp import ClientSession, types
from mcp.client.streamable_http import streamablehttp_client

DUMPED: dict[str, Any] = {"mode": "json", "by_alias": True, "exclude_none": True}
CAN_ASK = hasattr(types, "ElicitResult")


async def ask(_: Any, params: Any) -> Any:
    return types.ElicitResult(**await person.answer(params.model_dump(**DUMPED)))


async def sample(_: Any, params: Any) -> types.CreateMessageResult:
    return types.CreateMessageResult(**await person.answer(params.model_dump(**DUMPED)))


async def every_tool(session: ClientSession) -> list[str]:
    names: list[str] = []
    cursor = None
    while True:
        page = await session.list_tools(cursor=cursor)
        names += [tool.name for tool in page.tools]
        cursor = page.nextCursor
        if cursor is None:
            return names


async def main(url: str, token: str, revision: str) -> None:
    types.LATEST_PROTOCOL_VERSION = revision
    headers = {"Authorization": f"Bearer {token}"}
    listening: dict[str, Any] = {"message_handler": person.overhear, "sampling_callback": sample}
    if CAN_ASK:
        listening["elicitation_callback"] = ask
    async with (
        streamablehttp_client(url, headers=headers) as (reading, writing, _),
        ClientSession(reading, writing, **listening) as session,
    ):
        met = await session.initialize()

        async def call(tool: str, arguments: dict[str, Any]) -> Any:
            async def note(progress: float, total: float | None, message: str | None) -> None:
                person.note(progress)

            result = await session.call_tool(tool, arguments, progress_callback=note)
            return result.model_dump(**DUMPED)

        tools = await every_tool(session)
        person.tell(met={"revision": str(met.protocolVersion), "tools": tools})
        await person.call_what_is_wanted(call)


async def start() -> None:
    await main(**await person.hear())


if __name__ == "__main__":
    asyncio.run(start())
