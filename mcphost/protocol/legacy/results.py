"""Converts results of the stateless revision to the session-based revisions.

What a revision does not have is left out or expressed otherwise, because some of its clients
validate every result against its schema.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from mcp_types import SERVER_INFO_META_KEY

from mcphost.protocol.revisions import Revision

Json = dict[str, Any]

_NEW: Final = frozenset({"resultType", "ttlMs", "cacheScope"})
_OF_STRUCTURED: Final = frozenset({"title", "outputSchema", "_meta"})


def convert_result(revision: Revision, method: str, result: Mapping[str, Any]) -> Json:
    """Return a method's result in the form of the revision. Does not change the argument.

    Entries of lists are already in that form (`list_entry`).
    """
    plain: Json = {name: value for name, value in result.items() if name not in _NEW}
    meta = {k: v for k, v in plain.pop("_meta", {}).items() if k != SERVER_INFO_META_KEY}
    if meta:
        plain["_meta"] = meta
    reshape = _RESHAPE.get(method)
    return plain if reshape is None else reshape(revision, plain)


def list_entry(revision: Revision, entry: Mapping[str, Any]) -> Json:
    """Return one entry of a list in the form of the revision. Drops an output schema whose root is
    not an object: clients would refuse the list."""
    kept = dict(entry)
    if not revision.tasks:
        kept.pop("execution", None)
    if not revision.icons:
        kept.pop("icons", None)
    if not revision.structured:
        kept = {name: value for name, value in kept.items() if name not in _OF_STRUCTURED}
        _without_dates(kept)
    if "inputSchema" in kept and not revision.audio:
        kept.pop("annotations", None)
    schema = kept.get("outputSchema")
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        kept.pop("outputSchema", None)
    if "arguments" in kept and not revision.structured:
        kept["arguments"] = [
            {name: value for name, value in argument.items() if name != "title"}
            for argument in kept["arguments"]
        ]
    return kept


def _without_dates(entry: Json) -> None:
    annotations = entry.get("annotations")
    if isinstance(annotations, Mapping) and "lastModified" in annotations:
        kept = {name: value for name, value in annotations.items() if name != "lastModified"}
        entry["annotations"] = kept


def _convert_tool_result(revision: Revision, result: Json) -> Json:
    """Convert a tool result. Structured content must be an object here; the text content repeats it
    anyway."""
    if not revision.structured or not isinstance(result.get("structuredContent"), Mapping):
        result.pop("structuredContent", None)
    return {**result, "content": [_block(revision, block) for block in result.get("content", ())]}


def _convert_prompt(revision: Revision, result: Json) -> Json:
    messages = [
        {**message, "content": _block(revision, message["content"])}
        for message in result["messages"]
    ]
    return {**result, "messages": messages}


def _convert_contents(revision: Revision, result: Json) -> Json:
    if revision.structured:
        return result
    return {**result, "contents": [_without_meta(content) for content in result["contents"]]}


def _block(revision: Revision, block: Mapping[str, Any]) -> Json:
    if revision.structured:
        plain = dict(block)
        if not revision.icons:
            plain.pop("icons", None)
        return plain
    if block["type"] == "resource_link":
        return {"type": "text", "text": f"{block.get('title') or block['name']}: {block['uri']}"}
    if block["type"] == "audio" and not revision.audio:
        text = (
            f"Audio ({block['mimeType']}), which protocol revision {revision.name} does not support"
        )
        return {"type": "text", "text": text}
    plain = _without_meta(block)
    _without_dates(plain)
    if "resource" in plain:
        plain["resource"] = _without_meta(plain["resource"])
    return plain


def _without_meta(content: Mapping[str, Any]) -> Json:
    return {name: value for name, value in content.items() if name != "_meta"}


_RESHAPE: Final[Mapping[str, Callable[[Revision, Json], Json]]] = MappingProxyType(
    {
        "tools/call": _convert_tool_result,
        "prompts/get": _convert_prompt,
        "resources/read": _convert_contents,
    }
)
