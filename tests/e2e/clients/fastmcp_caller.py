"""FastMCP's client, version 2 or later, in an environment of its own. See this folder's docstring for what it reads and
writes."""

import asyncio
from typing import Any

import person
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StreamableHttpTransport

try:
    from mcp_types import CreateMessageResult
except ImportError:  # FastMCP before 4.0
    from mcp.types import CreateMessageResult

DUMPED: dict[str, Any] = {"mode": "json", "by_alias": True, "exclude_none": True}


async def ask(_: str, __: Any, params: Any, ___: Any) -> ElicitResult[Any]:
    return ElicitResult(**await person.answer(params.model_dump(**DUMPED)))


async def sample(_: Any, params: Any, __: Any) -> CreateMessageResult:
    return CreateMessageResult(**await person.answer(params.model_dump(**DUMPED)))


def negotiated(client: Client[Any]) -> str:
    if hasattr(client.session, "protocol_version"):
        return client.session.protocol_version
    return str(client.initialize_result.protocolVersion)


async def main(url: str, token: str, revision: str = "") -> None:
    mode = {"mode": "legacy"} if revision else {}
    transport = StreamableHttpTransport(url, headers={"Authorization": f"Bearer {token}"})
    listening = {
        "elicitation_handler": ask,
        "sampling_handler": sample,
        "log_handler": person.note_log,
        "message_handler": person.overhear,
    }
    async with Client(transport, **mode, **listening) as client:

        async def call(tool: str, arguments: dict[str, Any]) -> Any:
            async def note(progress: float, total: float | None, message: str | None) -> None:
                person.note(progress)

            result = await client.call_tool_mcp(tool, arguments, progress_handler=note)
            return result.model_dump(**DUMPED)

        async def read(uri: str) -> Any:
            return (await client.read_resource_mcp(uri)).model_dump(**DUMPED)

        async def get(prompt: str, arguments: dict[str, str]) -> Any:
            return (await client.get_prompt_mcp(prompt, arguments)).model_dump(**DUMPED)

        names = [each.name for each in await client.list_tools()]
        person.tell(met={"revision": negotiated(client), "tools": names})
        await person.call_what_is_wanted(call, read, get)


async def start() -> None:
    await main(**await person.hear())


if __name__ == "__main__":
    asyncio.run(start())
