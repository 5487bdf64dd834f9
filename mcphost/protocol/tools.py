"""Descriptions of tools for clients (spec: server/tools, "Tool" and "Tool Names")."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

MAX_NAME: Final = 64
"""The specification recommends at most 128; clients that prefix a server's name need room."""

_NAME: Final = re.compile(rf"[A-Za-z0-9_.-]{{1,{MAX_NAME}}}")


@dataclass(frozen=True, slots=True)
class ToolListing:
    """The entry of a tool in `tools/list`. Empty and None fields are left out.

    `annotations` has the keys of `ToolAnnotations`, `icons` are `Icon` objects, the schemas have
    passed `schemas.check_schema`.
    """

    name: str
    input_schema: Mapping[str, Any]
    title: str = ""
    description: str = ""
    output_schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] | None = None
    icons: Sequence[Mapping[str, Any]] = ()


def check_tool_name(name: str) -> str | None:
    """Return the problem with a tool's name, or None."""
    if _NAME.fullmatch(name):
        return None
    return f"A name is 1 to {MAX_NAME} of the characters A-Z, a-z, 0-9, _, - and ."


def describe_tool(listing: ToolListing) -> dict[str, Any]:
    """Return the tool in wire format."""
    tool: dict[str, Any] = {"name": listing.name}
    if listing.title:
        tool["title"] = listing.title
    if listing.description:
        tool["description"] = listing.description
    tool["inputSchema"] = listing.input_schema
    if listing.output_schema is not None:
        tool["outputSchema"] = listing.output_schema
    if listing.annotations:
        tool["annotations"] = listing.annotations
    if listing.icons:
        tool["icons"] = list(listing.icons)
    return tool
