"""The listing of a tool, prompt, resource or template on the wire, from its author's and its operator's
texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcphost.kinds.kind import Compiled
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.protocol.prompts import PromptListing, describe_prompt
from mcphost.protocol.resources import (
    ResourceListing,
    TemplateListing,
    describe_resource,
    describe_template,
)
from mcphost.protocol.tools import ToolListing, describe_tool


@dataclass(frozen=True, slots=True)
class ListingTexts:
    """What may differ between primitives that run the same function. `icons` as in the row."""

    name: str
    uri: str
    title: str
    description: str
    icons: Sequence[Mapping[str, Any]]


def describe(compiled: Compiled, texts: ListingTexts) -> dict[str, Any]:
    """Return the entry of a list. The operator's title and description override the author's."""
    common: dict[str, Any] = {
        "title": texts.title or compiled.title,
        "description": texts.description or compiled.description,
        "icons": texts.icons,
    }
    match compiled.primitive_type:
        case PrimitiveType.TOOL:
            return describe_tool(
                ToolListing(
                    name=texts.name,
                    **common,
                    input_schema=compiled.input_schema,
                    output_schema=compiled.output_schema,
                    annotations=compiled.annotations,
                )
            )
        case PrimitiveType.PROMPT:
            return describe_prompt(
                PromptListing(name=texts.name, **common, arguments=compiled.arguments)
            )
        case PrimitiveType.RESOURCE:
            return describe_resource(
                ResourceListing(
                    uri=texts.uri,
                    name=texts.name,
                    **common,
                    mime_type=compiled.mime_type,
                    size=compiled.size,
                    annotations=compiled.annotations,
                )
            )
        case PrimitiveType.TEMPLATE:
            return describe_template(
                TemplateListing(
                    uri_template=texts.uri,
                    name=texts.name,
                    **common,
                    mime_type=compiled.mime_type,
                    annotations=compiled.annotations,
                )
            )
