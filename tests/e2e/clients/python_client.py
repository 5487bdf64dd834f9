"""The official Python client. See this folder's docstring for what it writes."""

import asyncio
import json
import sys
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp_types import PromptReference, ResourceTemplateReference

GREETING = PromptReference(type="ref/prompt", name="greeting")
WANTED: dict[str, Any] = {
    "tools_list_changed": True,
    "prompts_list_changed": True,
    "resources_list_changed": True,
    "resource_subscriptions": ["note://readme"],
}
NOTE = ResourceTemplateReference(type="ref/resource", uri="note://{shelf}/{name}")


def tell(**what: Any) -> None:
    print(json.dumps(what), flush=True)


async def pages(ask: Any, kind: str) -> list[Any]:
    """Everything that a list has, page by page."""
    found: list[Any] = []
    cursor = None
    while True:
        page = await ask(cursor=cursor)
        found += getattr(page, kind)
        cursor = page.next_cursor
        if cursor is None:
            return found


async def walk(client: Client) -> dict[str, Any]:
    called: Any = await client.call_tool("echo", {"text": "grüße"})
    got: Any = await client.get_prompt("greeting", {"who": "Ada"})
    read: Any = await client.read_resource("note://readme")
    matched: Any = await client.read_resource("note://top/one")
    prompt = await client.complete(GREETING, {"name": "who", "value": "A"})
    template = await client.complete(NOTE, {"name": "name", "value": "o"}, {"shelf": "top"})
    return {
        "revision": client.protocol_version,
        "tools": [each.name for each in await pages(client.list_tools, "tools")],
        "prompts": [each.name for each in await pages(client.list_prompts, "prompts")],
        "resources": [each.uri for each in await pages(client.list_resources, "resources")],
        "templates": [
            each.uri_template
            for each in await pages(client.list_resource_templates, "resource_templates")
        ],
        "called": called.content[0].text,
        "got": got.messages[0].content.text,
        "read": read.contents[0].text,
        "matched": matched.contents[0].text,
        "who": prompt.completion.values,
        "name": template.completion.values,
    }


async def ask_anew(client: Client, event: ServerEvent) -> dict[str, Any]:
    match event:
        case ToolsListChanged():
            return {"tools": [each.name for each in await pages(client.list_tools, "tools")]}
        case PromptsListChanged():
            return {"prompts": [each.name for each in await pages(client.list_prompts, "prompts")]}
        case ResourcesListChanged():
            found = await pages(client.list_resources, "resources")
            return {"resources": [each.uri for each in found]}
        case ResourceUpdated(uri):
            read: Any = await client.read_resource(uri)
            return {"read": read.contents[0].text}


async def main(url: str, token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        tell(seen=await walk(client))
        async with client.listen(**WANTED) as heard:
            tell(listening=heard.honored.model_dump(exclude_none=True))
            async for event in heard:
                tell(**await ask_anew(client, event))


if __name__ == "__main__":
    asyncio.run(main(**json.load(sys.stdin)))
