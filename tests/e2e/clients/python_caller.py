"""The official Python client. See this folder's docstring for what it reads and writes."""

import asyncio
from typing import Any

import httpx2
import keychain
import person
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CreateMessageResult, ElicitResult

# As the SDK's own: httpx2 by itself gives up after five seconds in which nothing comes.
PATIENCE = httpx2.Timeout(30, read=300)
DUMPED: dict[str, Any] = {"mode": "json", "by_alias": True, "exclude_none": True}


async def ask(_: Any, params: Any) -> ElicitResult:
    return ElicitResult(**await person.answer(params.model_dump(**DUMPED)))


async def sample(_: Any, params: Any) -> CreateMessageResult:
    return CreateMessageResult(**await person.answer(params.model_dump(**DUMPED)))


async def every_tool(client: Client) -> list[str]:
    names: list[str] = []
    cursor = None
    while True:
        page = await client.list_tools(cursor=cursor)
        names += [tool.name for tool in page.tools]
        cursor = page.next_cursor
        if cursor is None:
            return names


async def main(url: str, token: str = "", revision: str = "", tokens: str = "") -> None:
    mode = "legacy" if revision else "auto"
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    auth = keychain.provider(url, tokens) if tokens else None
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE, auth=auth) as http,
        Client(
            streamable_http_client(url, http_client=http),
            mode=mode,
            elicitation_callback=ask,
            sampling_callback=sample,
            logging_callback=person.note_log,
            log_level="info",
            message_handler=person.overhear,
        ) as client,
    ):

        async def call(tool: str, arguments: dict[str, Any]) -> Any:
            async def note(progress: float, total: float | None, message: str | None) -> None:
                person.note(progress)

            result = await client.call_tool(tool, arguments, progress_callback=note)
            return result.model_dump(**DUMPED)

        async def read(uri: str) -> Any:
            return (await client.read_resource(uri)).model_dump(**DUMPED)

        async def get(prompt: str, arguments: dict[str, str]) -> Any:
            return (await client.get_prompt(prompt, arguments)).model_dump(**DUMPED)

        person.tell(met={"revision": client.protocol_version, "tools": await every_tool(client)})
        await person.call_what_is_wanted(call, read, get)


async def start() -> None:
    await main(**await person.hear())


if __name__ == "__main__":
    asyncio.run(start())
