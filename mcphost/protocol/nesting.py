"""The limit on the nesting of a message.

The threat: a few kilobytes of brackets, which recursive code (ours, pydantic's, a tool's) walks until the
stack ends. In Python that is an error of one request, in a library written in C or Rust the end of the
process. To find out must cost less than parsing, which is why brackets are counted first.
"""

from collections.abc import Mapping
from typing import Any, Final

import jsonschema_rs

from mcphost.protocol.errors import invalid_request

MAX_DEPTH: Final = 64
"""How many levels of objects and arrays a message may have, counting the message itself."""


_SHORT: Final = 1024


def check_depth(parsed: dict[str, Any] | list[Any], body: bytes) -> None:
    """Refuse a message, or a batch of them, that is nested too deep. Raises INVALID_REQUEST.

    `body` is the text of `parsed`. The array of a batch does not count.
    """
    # Few messages have more brackets than levels are allowed, and counting brackets is cheap.
    if len(body) <= _SHORT:
        if body.count(b"{") + body.count(b"[") <= MAX_DEPTH:
            return
    elif _has_few_brackets(body):
        return
    levels = _OF_BATCH if type(parsed) is list else _OF_MESSAGE
    if not levels.is_valid(parsed):
        raise invalid_request(f"The message is nested deeper than {MAX_DEPTH} levels")


def is_deeper(value: Any, levels: int) -> bool:
    """Whether a value of JSON has members or elements below so many levels of objects and arrays."""
    inner: list[Any] = [value]
    for _ in range(levels + 1):
        inner = [
            part
            for node in inner
            if isinstance(node, dict | list)
            for part in (node.values() if isinstance(node, dict) else node)
        ]
    return bool(inner)


def _has_few_brackets(body: bytes) -> bool:
    brackets = 0
    for bracket in (b"{", b"["):  # `find` skips other bytes many times faster than `count`
        at = body.find(bracket)
        while at >= 0:
            brackets += 1
            if brackets > MAX_DEPTH:
                return False
            at = body.find(bracket, at + 1)
    return True


def _levels(count: int) -> jsonschema_rs.Draft202012Validator:
    """Compile a schema that accepts at most `count` levels: a walk in Python takes ten times
    parsing."""
    schemas: dict[str, Mapping[str, Any]] = {"0": {"type": ["string", "number", "boolean", "null"]}}
    for level in range(1, count + 1):
        inner = {"$ref": f"#/$defs/{level - 1}"}
        schemas[str(level)] = {"items": inner, "additionalProperties": inner}
    schema = {"$ref": f"#/$defs/{count}", "$defs": schemas}
    return jsonschema_rs.Draft202012Validator(schema, offline=True)


_OF_MESSAGE: Final = _levels(MAX_DEPTH)
_OF_BATCH: Final = _levels(MAX_DEPTH + 1)
