"""The listing of a primitive on the wire, from its author's and its operator's texts."""

from collections.abc import Callable, Mapping, Sequence
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
    return _DESCRIBE[compiled.primitive_type](compiled, texts)


def _texts(compiled: Compiled, texts: ListingTexts) -> dict[str, Any]:
    return {
        "name": texts.name,
        "title": texts.title or compiled.title,
        "description": texts.description or compiled.description,
        "icons": texts.icons,
    }


def _tool(compiled: Compiled, texts: ListingTexts) -> dict[str, Any]:
    return describe_tool(
        ToolListing(
            **_texts(compiled, texts),
            input_schema=compiled.input_schema,
            output_schema=compiled.output_schema,
            annotations=compiled.annotations,
        )
    )


def _prompt(compiled: Compiled, texts: ListingTexts) -> dict[str, Any]:
    return describe_prompt(PromptListing(**_texts(compiled, texts), arguments=compiled.arguments))


def _resource(compiled: Compiled, texts: ListingTexts) -> dict[str, Any]:
    return describe_resource(
        ResourceListing(
            uri=texts.uri,
            **_texts(compiled, texts),
            mime_type=compiled.mime_type,
            size=compiled.size,
            annotations=compiled.annotations,
        )
    )


def _template(compiled: Compiled, texts: ListingTexts) -> dict[str, Any]:
    return describe_template(
        TemplateListing(
            uri_template=texts.uri,
            **_texts(compiled, texts),
            mime_type=compiled.mime_type,
            annotations=compiled.annotations,
        )
    )


_DESCRIBE: Mapping[PrimitiveType, Callable[[Compiled, ListingTexts], dict[str, Any]]] = {
    PrimitiveType.TOOL: _tool,
    PrimitiveType.PROMPT: _prompt,
    PrimitiveType.RESOURCE: _resource,
    PrimitiveType.TEMPLATE: _template,
}
