"""LangChain's adapters of MCP, in an environment of their own. See this folder's docstring for what it reads
and writes."""

import asyncio
from typing import Any

import person
from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.prompts import load_mcp_prompt
from langchain_mcp_adapters.resources import load_mcp_resources
from langchain_mcp_adapters.tools import load_mcp_tools
from mcp.types import ElicitResult

DUMPED: dict[str, Any] = {"mode": "json", "by_alias": True, "exclude_none": True}


async def ask(_: Any, params: Any, __: Any) -> ElicitResult:
    return ElicitResult(**await person.answer(params.model_dump(**DUMPED)))


async def note(progress: float, *_: Any) -> None:
    person.note(progress)


async def main(url: str, token: str) -> None:
    callbacks = Callbacks(on_logging_message=person.note_log, on_progress=note, on_elicitation=ask)
    headers = {"Authorization": f"Bearer {token}"}
    client = MultiServerMCPClient(
        {"it": {"transport": "http", "url": url, "headers": headers}}, callbacks=callbacks
    )
    async with client.session("it", auto_initialize=False) as session:
        met = await session.initialize()
        loaded = await load_mcp_tools(session, callbacks=callbacks, server_name="it")
        tools = {tool.name: tool for tool in loaded}

        async def call(name: str, arguments: dict[str, Any]) -> Any:
            wanted = {"type": "tool_call", "id": "1", "name": name, "args": arguments}
            message = await tools[name].ainvoke(wanted)
            return {"content": message.content, "isError": message.status == "error"}

        async def read(uri: str) -> Any:
            blobs = await load_mcp_resources(session, uris=uri)
            return {"contents": [{"text": blob.as_string()} for blob in blobs]}

        async def get(prompt: str, arguments: dict[str, str]) -> Any:
            messages = await load_mcp_prompt(session, prompt, arguments=arguments)
            return {"messages": [{"content": {"text": message.content}} for message in messages]}

        person.tell(met={"revision": str(met.protocolVersion), "tools": list(tools)})
        await person.call_what_is_wanted(call, read, get)


async def start() -> None:
    await main(**await person.hear())


if __name__ == "__main__":
    asyncio.run(start())
