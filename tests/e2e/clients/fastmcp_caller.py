"""FastMCP's client, in an environment of its own. See this folder's docstring for what it reads and
writes."""

import asyncio
from typing import Any

import person
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StreamableHttpTransport
from mcp_types import CreateMessageResult

DUMPED: dict[str, Any] = {"mode": "json", "by_alias": True, "exclude_none": True}


async def ask(_: str, __: Any, params: Any, ___: Any) -> ElicitResult[Any]:
    return ElicitResult(**await person.answer(params.model_dump(**DUMPED)))


async def sample(_: Any, params: Any, __: Any) -> CreateMessageResult:
    return CreateMessageResult(**await person.answer(params.model_dump(**DUMPED)))


async def main(url: str, token: str, revision: str = "") -> None:
    mode = "legacy" if revision else "auto"
    transport = StreamableHttpTransport(url, headers={"Authorization": f"Bearer {token}"})
    listening = {
        "elicitation_handler": ask,
        "sampling_handler": sample,
        "message_handler": person.overhear,
    }
    async with Client(transport, mode=mode, **listening) as client:

        async def call(tool: str, arguments: dict[str, Any]) -> Any:
            async def note(progress: float, total: float | None, message: str | None) -> None:
                person.note(progress)

            result = await client.call_tool_mcp(tool, arguments, progress_handler=note)
            return result.model_dump(**DUMPED)

        names = [each.name for each in await client.list_tools()]
        person.tell(met={"revision": client.session.protocol_version, "tools": names})
        await person.call_what_is_wanted(call)


async def start() -> None:
    await main(**await person.hear())


if __name__ == "__main__":
    asyncio.run(start())
