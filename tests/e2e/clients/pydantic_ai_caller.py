"""Pydantic AI's toolset of MCP, in an environment of its own. See this folder's docstring for what it reads
and writes."""

import asyncio
from typing import Any

import person
from fastmcp.client.elicitation import ElicitResult
from pydantic_ai.mcp import MCPToolset

DUMPED: dict[str, Any] = {"mode": "json", "by_alias": True, "exclude_none": True}


async def ask(_: str, __: Any, params: Any, ___: Any) -> ElicitResult[Any]:
    return ElicitResult(**await person.answer(params.model_dump(**DUMPED)))


async def note(progress: float, *_: Any) -> None:
    person.note(progress)


async def main(url: str, token: str) -> None:
    toolset: MCPToolset[None] = MCPToolset(
        url,
        headers={"Authorization": f"Bearer {token}"},
        elicitation_handler=ask,
        log_handler=person.note_log,
        progress_handler=note,
    )
    async with toolset:

        async def call(tool: str, arguments: dict[str, Any]) -> Any:
            result = await toolset.direct_call_tool(tool, arguments)
            return {"content": [{"text": str(result)}]}

        async def read(uri: str) -> Any:
            return {"contents": [{"text": await toolset.read_resource(uri)}]}

        async def get(prompt: str, arguments: dict[str, str]) -> Any:
            messages = (await toolset.get_prompt(prompt, arguments)).messages
            return {"messages": [{"content": {"text": str(each.content)}} for each in messages]}

        tools = [tool.name for tool in await toolset.list_tools()]
        revision = toolset.client.session.protocol_version
        person.tell(met={"revision": revision, "tools": tools})
        await person.call_what_is_wanted(call, read, get)


async def start() -> None:
    await main(**await person.hear())


if __name__ == "__main__":
    asyncio.run(start())
