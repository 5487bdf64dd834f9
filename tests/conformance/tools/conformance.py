"""What the official MCP conformance suite expects a server under test to expose.

Names, texts and schemas are the suite's, to the letter.
"""

import asyncio
import base64
from typing import Any

from pydantic import BaseModel

from mcphost.sdk import (
    Audio,
    Context,
    EmbeddedResource,
    Image,
    Text,
    TextResource,
    ToolAnnotations,
    ToolError,
    complete,
    prompt,
    resource,
    tool,
)

READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)
PAUSE_SECONDS = 0.05

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="

ADDRESS_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

REGION_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    "required": ["region"],
}


class Name(BaseModel):
    name: str


@tool(annotations=READ_ONLY)
async def greet(name: str = "world") -> str:
    """Greet someone by name. Its calls never become tasks."""
    return f"Hello, {name}!"


@tool(annotations=READ_ONLY, input_schema=ADDRESS_SCHEMA)
async def json_schema_2020_12_tool(**contact: Any) -> str:
    """Takes an address; its input schema uses most of JSON Schema 2020-12."""
    return f"Contact with {', '.join(sorted(contact))}"


@tool(annotations=READ_ONLY)
async def test_simple_text() -> str:
    """Returns a text."""
    return "This is a simple text response for testing."


@tool(annotations=READ_ONLY)
async def test_image_content() -> Image:
    """Returns an image."""
    return Image(data=PNG, mime_type="image/png")


@tool(annotations=READ_ONLY)
async def test_audio_content() -> Audio:
    """Returns a sound."""
    return Audio(data=WAV, mime_type="audio/wav")


@tool(annotations=READ_ONLY)
async def test_embedded_resource() -> EmbeddedResource:
    """Returns a resource within the result."""
    return EmbeddedResource(
        resource=TextResource(
            uri="test://embedded-resource",
            mime_type="text/plain",
            text="This is an embedded resource content.",
        )
    )


@tool(annotations=READ_ONLY)
async def test_multiple_content_types() -> list[Text | Image | EmbeddedResource]:
    """Returns a text, an image and a resource."""
    return [
        Text(text="Multiple content types test:"),
        Image(data=PNG, mime_type="image/png"),
        EmbeddedResource(
            resource=TextResource(
                uri="test://mixed-content-resource",
                mime_type="application/json",
                text='{"test":"data","value":123}',
            )
        ),
    ]


@tool(annotations=READ_ONLY)
async def test_error_handling() -> str:
    """Fails."""
    raise ToolError("This tool intentionally returns an error for testing")


@tool(annotations=READ_ONLY)
async def test_tool_with_progress(ctx: Context) -> str:
    """Reports progress three times."""
    for progress in (0, 50, 100):
        ctx.progress(progress, 100)
        await asyncio.sleep(PAUSE_SECONDS)
    return "The tool reported its progress."


@tool(annotations=READ_ONLY)
async def test_reconnection(ctx: Context) -> str:
    """Ends its stream before its result, which is picked up on another."""
    ctx.close_stream()
    await asyncio.sleep(PAUSE_SECONDS)
    return "Reconnected."


@tool(annotations=READ_ONLY)
async def test_tool_with_logging(ctx: Context) -> str:
    """Logs three messages."""
    ctx.info("Tool execution started")
    await asyncio.sleep(PAUSE_SECONDS)
    ctx.info("Tool processing data")
    await asyncio.sleep(PAUSE_SECONDS)
    ctx.info("Tool execution completed")
    return "The tool logged three messages."


@tool(annotations=READ_ONLY)
async def test_logging_tool(ctx: Context) -> str:
    """Logs a message, which is sent only to a client that asked for a level."""
    ctx.info("A message for those who asked for it")
    return "The tool logged a message."


@tool(annotations=READ_ONLY)
async def test_missing_capability(ctx: Context) -> str:
    """Cannot run unless the client can sample."""
    ctx.require("sampling")
    return "The client declared the capability to sample."


@tool(annotations=READ_ONLY)
async def test_streaming_elicitation(ctx: Context) -> str:
    """Asks without ever sending the client a request of its own on its stream."""
    ctx.progress(1, 1)
    return f"Hello, {(await ctx.elicit('user_name', 'What is your name?', Name)).name}!"


@tool(annotations=READ_ONLY, input_schema=REGION_SCHEMA)
async def test_x_mcp_header(region: str) -> str:
    """Returns the region, which clients also send as a header."""
    return region


@tool(annotations=READ_ONLY)
async def test_trigger_tool_change(ctx: Context) -> str:
    """Notify subscribers that the list of tools has changed."""
    ctx.announce_list("tools")
    return "The change was announced."


@tool(annotations=READ_ONLY)
async def test_trigger_prompt_change(ctx: Context) -> str:
    """Notify subscribers that the list of prompts has changed."""
    ctx.announce_list("prompts")
    return "The change was announced."


@resource("test://static-text", mime_type="text/plain")
async def static_text() -> str:
    """A text that never changes."""
    return "This is the content of the static text resource."


@resource("test://static-binary", mime_type="image/png")
async def static_binary() -> bytes:
    """A picture that never changes."""
    return base64.b64decode(PNG)


@resource("test://watched-resource", mime_type="text/plain")
async def watched_resource() -> str:
    """A text to be told of when it changes."""
    return "This is the content of the watched resource."


@resource("test://template/{id}/data", mime_type="application/json")
async def template_data(id: str) -> dict[str, Any]:
    """Data for any id."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


@prompt
async def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


@prompt
async def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@prompt
async def test_prompt_with_embedded_resource(resourceUri: str) -> list[EmbeddedResource | str]:  # noqa: N803 - the suite's
    """A prompt that holds a resource."""
    text = "Embedded resource content for testing."
    held = TextResource(uri=resourceUri, mime_type="text/plain", text=text)
    return [EmbeddedResource(resource=held), "Please process the embedded resource above."]


@prompt
async def test_prompt_with_image() -> list[Image | str]:
    """A prompt that holds a picture."""
    return [Image(data=PNG, mime_type="image/png"), "Please analyze the image above."]


@complete(test_prompt_with_arguments, "arg1")
async def first_arguments(typed: str) -> list[str]:
    """Values that begin with what was typed."""
    return [typed + ending for ending in ("", "Value1", "Value2")]
