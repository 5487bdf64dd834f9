"""FastMCP's client, in an environment of its own. See this folder's docstring for what it writes.

It has no method to listen yet: its session does, which is the official one.
"""

import asyncio
import json
import sys
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StreamableHttpTransport
from mcp.client.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
    listen,
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


async def walk(client: Any) -> dict[str, Any]:
    called = await client.call_tool("echo", {"text": "grüße"})
    got = await client.get_prompt("greeting", {"who": "Ada"})
    read = await client.read_resource("note://readme")
    matched = await client.read_resource("note://top/one")
    prompt = await client.complete(GREETING, {"name": "who", "value": "A"})
    template = await client.complete(NOTE, {"name": "name", "value": "o"}, {"shelf": "top"})
    return {
        "revision": client.session.protocol_version,
        "tools": [each.name for each in await client.list_tools()],
        "prompts": [each.name for each in await client.list_prompts()],
        "resources": [str(each.uri) for each in await client.list_resources()],
        "templates": [each.uri_template for each in await client.list_resource_templates()],
        "called": called.content[0].text,
        "got": got.messages[0].content.text,
        "read": read[0].text,
        "matched": matched[0].text,
        "who": prompt.values,
        "name": template.values,
    }


async def ask_anew(client: Any, event: Any) -> dict[str, Any]:
    match event:
        case ToolsListChanged():
            return {"tools": [each.name for each in await client.list_tools()]}
        case PromptsListChanged():
            return {"prompts": [each.name for each in await client.list_prompts()]}
        case ResourcesListChanged():
            return {"resources": [str(each.uri) for each in await client.list_resources()]}
        case ResourceUpdated(uri):
            return {"read": (await client.read_resource(uri))[0].text}
        case _:
            return {"unknown": repr(event)}


async def main(url: str, token: str) -> None:
    transport = StreamableHttpTransport(url, headers={"Authorization": f"Bearer {token}"})
    async with Client(transport) as client:
        tell(seen=await walk(client))
        async with listen(client.session, **WANTED) as heard:
            tell(listening=heard.honored.model_dump(exclude_none=True))
            async for event in heard:
                tell(**await ask_anew(client, event))


if __name__ == "__main__":
    asyncio.run(main(**json.load(sys.stdin)))
