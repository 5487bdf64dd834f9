"""FastMCP's client, in an environment of its own. See this folder's docstring for what it reads and
writes."""

import asyncio
from typing import Any

import person
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StreamableHttpTransport


async def ask(message: str, _: Any, params: Any, __: Any) -> ElicitResult[Any]:
    schema = params.requested_schema
    return ElicitResult(**await person.answer({"message": message, "requestedSchema": schema}))


async def main(url: str, token: str) -> None:
    transport = StreamableHttpTransport(url, headers={"Authorization": f"Bearer {token}"})
    async with Client(transport, elicitation_handler=ask) as client:

        async def call(tool: str, arguments: dict[str, Any]) -> Any:
            result = await client.call_tool(tool, arguments, raise_on_error=False)
            text = [{"type": "text", "text": block.text} for block in result.content]
            return {"content": text, "isError": result.is_error}

        names = [each.name for each in await client.list_tools()]
        person.tell(met={"revision": client.session.protocol_version, "tools": names})
        await person.call_what_is_wanted(call)


async def start() -> None:
    await main(**await person.hear())


if __name__ == "__main__":
    asyncio.run(start())
