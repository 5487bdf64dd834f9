"""Encodes return values of prompts and resources as messages and contents."""

from base64 import b64encode
from typing import Any

from pydantic import TypeAdapter

from mcphost.kinds.functions.returns import BLOCKS, InvalidResultError, block_of, sized, text_block
from mcphost.protocol.images import matches_mime_type
from mcphost.runtime.outcomes import Complete
from mcphost.sdk import BlobResource, Message, TextResource

FULL = (TextResource, BlobResource)

_ANYTHING: TypeAdapter[Any] = TypeAdapter(Any)


class ReturnedMessages:
    """Encodes the result of `prompts/get` (spec: server/prompts, GetPromptResult).

    Accepts a string, content, a Message, or a list of them. Values that are not a Message get the
    role `user`.
    """

    def encode(self, value: Any, limit: int, target: str = "") -> Complete:
        """Encode the result. Raises InvalidResultError."""
        values = value if isinstance(value, list | tuple) else [value]
        return sized(lambda: {"messages": [_message(message) for message in values]}, limit)


class ReturnedContents:
    """Encodes the result of `resources/read` (spec: server/resources, ReadResourceResult).

    Accepts a string, bytes, complete contents or a list of complete contents; anything else is
    written as JSON.
    """

    def __init__(self, mime_type: str = "") -> None:
        self._mime_type = mime_type

    def encode(self, value: Any, limit: int, target: str = "") -> Complete:
        """Encode the contents of the URI `target`. Raises InvalidResultError."""
        return sized(lambda: {"contents": self._contents(value, target)}, limit)

    def _contents(self, value: Any, target: str) -> list[dict[str, Any]]:
        full = value if isinstance(value, list | tuple) else [value]
        if all(isinstance(content, FULL) for content in full) and full:
            return [
                content.model_dump(mode="json", by_alias=True, exclude_none=True)
                for content in full
            ]
        if wrong := next((content for content in full if isinstance(content, BLOCKS)), None):
            raise InvalidResultError(
                f"a resource returns text, bytes, TextResource or BlobResource, not {type(wrong).__name__}"
            )
        if any(isinstance(content, FULL) for content in full):
            raise InvalidResultError("a list must not mix complete contents with other values")
        field, default = "text", "application/json"
        if isinstance(value, bytes):
            if not matches_mime_type(self._mime_type, value):
                raise InvalidResultError(
                    f"the content does not match its MIME type ({self._mime_type})"
                )
            field, default = "blob", "application/octet-stream"
            text = b64encode(value).decode()
        elif isinstance(value, str):
            default = "text/plain"
            text = value
        else:
            text = _ANYTHING.dump_json(value, by_alias=True).decode()
        return [{"uri": target, "mimeType": self._mime_type or default, field: text}]


def _message(value: Any) -> dict[str, Any]:
    message = value if isinstance(value, Message) else Message(value)
    content = message.content
    if isinstance(content, str):
        return {"role": message.role, "content": text_block(content)}
    if isinstance(content, BLOCKS):
        return {"role": message.role, "content": block_of(content)}
    raise InvalidResultError(f"a message is a text or content, not {type(content).__name__}")
