"""The parts of an operation that a tool's configuration was made of, in words of OpenAPI."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

_PARTS: Final = {
    "url": "the address of its server with its path",
    "query": "the query parameter",
    "headers": "the header",
    "path": "the path parameter",
    "body": "the body",
}


def place_in_document(steps: Sequence[int | str], config: Mapping[str, Any]) -> str:
    """Return what is at a path in a configuration, such as `the header 'X-Key'`; empty if it has no word.

    The numbers of lists may be texts. A step that the configuration does not have is ignored, because
    pydantic has one for the type of the body.
    """
    if list(steps[:1]) == ["input_schema"]:
        return "the schema of its arguments"
    inside = [step for step in steps if step != "request"]
    part = _PARTS.get(str(inside[0]) if inside else "", "")
    node: Any = config.get("request", {})
    names = []
    for step in inside:
        node = _member(node, step)
        if isinstance(node, Mapping) and isinstance(node.get("name"), str):
            names.append(repr(node["name"][:100]))
    return " ".join([part, *names[:1]]) if part else ""


def _member(node: Any, step: int | str) -> Any:
    if isinstance(node, Mapping):
        return node.get(step, node)
    number = int(step) if str(step).isdecimal() else -1
    return node[number] if isinstance(node, list) and 0 <= number < len(node) else node
