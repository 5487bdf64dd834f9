"""How what a tenant offers is listed on the wire, from what its author and its operator say."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcphost.kinds.kind import Compiled
from mcphost.kinds.sorts import Sort
from mcphost.protocol.prompts import PromptListing, describe_prompt
from mcphost.protocol.resources import (
    ResourceListing,
    TemplateListing,
    describe_resource,
    describe_template,
)
from mcphost.protocol.tools import ToolListing, describe_tool


@dataclass(frozen=True, slots=True)
class Face:
    """What those that run the same function may differ in. `icons` as in the row."""

    name: str
    uri: str
    title: str
    description: str
    icons: Sequence[Mapping[str, Any]]


def describe(compiled: Compiled, face: Face) -> dict[str, Any]:
    """The entry of a list. The operator's title and description win over the author's."""
    return _DESCRIBE[compiled.sort](compiled, face)


def _texts(compiled: Compiled, face: Face) -> dict[str, Any]:
    return {
        "name": face.name,
        "title": face.title or compiled.title,
        "description": face.description or compiled.description,
        "icons": face.icons,
    }


def _tool(compiled: Compiled, face: Face) -> dict[str, Any]:
    return describe_tool(
        ToolListing(
            **_texts(compiled, face),
            input_schema=compiled.input_schema,
            output_schema=compiled.output_schema,
            annotations=compiled.annotations,
        )
    )


def _prompt(compiled: Compiled, face: Face) -> dict[str, Any]:
    return describe_prompt(PromptListing(**_texts(compiled, face), arguments=compiled.arguments))


def _resource(compiled: Compiled, face: Face) -> dict[str, Any]:
    return describe_resource(
        ResourceListing(
            uri=face.uri,
            **_texts(compiled, face),
            mime_type=compiled.mime_type,
            size=compiled.size,
            annotations=compiled.annotations,
        )
    )


def _template(compiled: Compiled, face: Face) -> dict[str, Any]:
    return describe_template(
        TemplateListing(
            uri_template=face.uri,
            **_texts(compiled, face),
            mime_type=compiled.mime_type,
            annotations=compiled.annotations,
        )
    )


_DESCRIBE: Mapping[Sort, Callable[[Compiled, Face], dict[str, Any]]] = {
    Sort.TOOL: _tool,
    Sort.PROMPT: _prompt,
    Sort.RESOURCE: _resource,
    Sort.TEMPLATE: _template,
}
