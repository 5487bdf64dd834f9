"""How deep a message may nest: enough for every purpose, and little enough to be walked without fear."""

from typing import Any, Final

from mcphost.protocol.errors import invalid_request

MAX_DEPTH: Final = 64
"""How many objects and arrays may lie within one another, the message itself counted."""


def check_depth(parsed: dict[str, Any] | list[Any], body: bytes) -> None:
    """Refuse a message, or a batch of them, that nests deeper. Raises INVALID_REQUEST.

    `body` is what it was parsed from. The array that makes a batch does not count.
    """
    # Hardly a message has more brackets than it may have levels, and counting them is cheap.
    if body.count(b"{") + body.count(b"[") <= MAX_DEPTH:
        return
    level: list[Any] = _children(parsed) if type(parsed) is list else [parsed]
    for _ in range(MAX_DEPTH):
        level = [child for node in level for child in _children(node)]
        if not level:
            return
    raise invalid_request(f"The message is nested deeper than {MAX_DEPTH} levels")


def _children(node: dict[str, Any] | list[Any]) -> list[Any]:
    values = node.values() if type(node) is dict else node
    return [value for value in values if type(value) is dict or type(value) is list]
