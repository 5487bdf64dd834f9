"""The OpenAI Agents SDK's MCP server object, in an environment of its own. See this folder's docstring for what
it reads and writes."""

import asyncio
from typing import Any

import person
from agents.mcp import MCPServerStreamableHttp

DUMPED: dict[str, Any] = {"mode": "json", "by_alias": True, "exclude_none": True}


async def main(url: str, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    async with MCPServerStreamableHttp(
        {"url": url, "headers": headers}, message_handler=person.overhear
    ) as server:

        async def call(tool: str, arguments: dict[str, Any]) -> Any:
            return (await server.call_tool(tool, arguments)).model_dump(**DUMPED)

        async def read(uri: str) -> Any:
            return (await server.read_resource(uri)).model_dump(**DUMPED)

        async def get(prompt: str, arguments: dict[str, str]) -> Any:
            return (await server.get_prompt(prompt, arguments)).model_dump(**DUMPED)

        tools = [tool.name for tool in await server.list_tools()]
        person.tell(met={"revision": server.session.protocol_version, "tools": tools})
        await person.call_what_is_wanted(call, read, get)


async def start() -> None:
    await main(**await person.hear())


if __name__ == "__main__":
    asyncio.run(start())
