"""Optional members that a client sends empty instead of omitting them: `null`, and `[]` for an empty
object (PHP).

The schemas of all revisions refuse both. Common client libraries send them, and their meaning is clear, so
they are removed or corrected before anything is validated. Only optional members of MCP count:
the arguments of tools are not changed, because their schema says what null means.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
)


class ObjectShape(NamedTuple):
    """The optional members of an object, which may be null, and those that are objects. With
    `any_objects`, it may have any members, and all are optional objects."""

    optional: tuple[str, ...] = ()
    objects: Mapping[str, "ObjectShape"] = {}
    any_objects: bool = False


_CLOSED: Final = ObjectShape()
_OPEN: Final = ObjectShape(any_objects=True)
_CAPABILITY_NAMES: Final = (
    "roots",
    "sampling",
    "elicitation",
    "tasks",
    "extensions",
    "experimental",
)
_CAPABILITIES: Final = ObjectShape(_CAPABILITY_NAMES, dict.fromkeys(_CAPABILITY_NAMES, _OPEN))
_META: Final = ObjectShape(
    ("progressToken", LOG_LEVEL_META_KEY, CLIENT_INFO_META_KEY),
    {CLIENT_CAPABILITIES_META_KEY: _CAPABILITIES},
)
_FILTER: Final = ObjectShape(
    (
        "toolsListChanged",
        "promptsListChanged",
        "resourcesListChanged",
        "resourceSubscriptions",
        "taskIds",
    )
)
_PARAMS: Final = ObjectShape(
    ("_meta", "arguments", "cursor", "context", "requestState", "inputResponses", "task"),
    {
        "_meta": _META,
        "arguments": _CLOSED,
        "inputResponses": _CLOSED,
        "context": ObjectShape(("arguments",), {"arguments": _OPEN}),
        "notifications": _FILTER,
        "task": ObjectShape(("ttl",)),
        "capabilities": _CAPABILITIES,
        "clientInfo": _CLOSED,
    },
)
_PROMPT: Final = _PARAMS._replace(objects={**_PARAMS.objects, "arguments": _OPEN})
_RESULT: Final = ObjectShape(("_meta",), {"_meta": _CLOSED})


def drop_empty(parsed: Any) -> None:
    """Remove members that the client sent empty from a parsed body, or from each message of a batch."""
    for message in parsed if type(parsed) is list else [parsed]:
        if type(message) is dict:
            _drop_from_message(message)


def drop_empty_content(response: dict[str, Any]) -> None:
    """Make the empty array that PHP sends for an empty form an object. A sampling result
    may have an empty `content` array."""
    if response.get("content") == [] and "action" in response:
        response["content"] = {}


def _drop_from_message(message: dict[str, Any]) -> None:
    params = _PROMPT if message.get("method") == "prompts/get" else _PARAMS
    is_response = message.get("result") is not None or message.get("error") is not None
    optional = ("params", "method") if is_response else ("params",)
    if str(message.get("method")).startswith("notifications/"):
        optional = ("params", "id")
    _drop(message, ObjectShape(optional, {"params": params, "result": _RESULT}))
    if message.get("error", 0) is None and "result" in message:
        del message["error"]
    if message.get("result", 0) is None and "method" not in message:
        del message["result"]
        if "error" not in message:
            message["result"] = {}
    if type(result := message.get("result")) is dict:
        drop_empty_content(result)


def _drop(holder: dict[str, Any], shape: ObjectShape) -> None:
    """Remove the empty members of an object. Only what has a name here is looked at: an object may have
    millions of members."""
    for name in shape.optional:
        if name in holder and holder[name] is None:
            del holder[name]
    for name, inner in shape.objects.items():
        member = holder.get(name)
        if member == []:
            holder[name] = {}
        elif type(member) is dict:
            _drop(member, inner)
    members = holder.values()
    if shape.any_objects and (None in members or [] in members):
        kept = {name: {} if member == [] else member for name, member in holder.items()}
        holder.clear()
        holder.update((name, member) for name, member in kept.items() if member is not None)
