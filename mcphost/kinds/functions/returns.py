"""Return values of Python tools: the output schema of a return type, and the encoding of results.

A result is JSON that can be sent, or InvalidResultError is raised (spec: server/tools, Tool Result).
"""

import collections.abc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import NoneType, UnionType
from typing import Annotated, Any, Never, NoReturn, Protocol, Union, get_args, get_origin

import orjson
from pydantic import TypeAdapter

from mcphost.kinds.functions.schemas import is_infinite, output_validator, schema_of
from mcphost.protocol.json_values import dump_json, without_lone_surrogates
from mcphost.runtime.outcomes import Complete
from mcphost.runtime.schema import Validator, reason_of
from mcphost.sdk.content import (
    NOTHING,
    Audio,
    Content,
    EmbeddedResource,
    Image,
    ResourceLink,
    Result,
    Text,
)

ANYTHING: TypeAdapter[Any] = TypeAdapter(Any)
BLOCKS = (Text, Image, Audio, ResourceLink, EmbeddedResource)
LISTS = (list, tuple, collections.abc.Sequence, collections.abc.Iterable)
WORDS = {str, None, NoneType, Any, object, Never, NoReturn}


class InvalidResultError(Exception):
    """The return value of a function cannot be sent. `message` is for the caller, empty if there is
    nothing more to say; `detail` is for the log."""

    def __init__(self, detail: str, message: str = "") -> None:
        self.message = message
        self.detail = detail
        super().__init__(detail)


class Encoder(Protocol):
    """Encodes the return value of a function as the method's result."""

    def encode(self, value: Any, limit: int, target: str = "") -> Complete:
        """Return the outcome, with a result in at most `limit` bytes of JSON. Raises InvalidResultError."""


@dataclass(frozen=True, slots=True)
class Returns:
    """The encoder of a tool's return type. Without a validator there is no output schema."""

    adapter: TypeAdapter[Any] = ANYTHING
    validator: Validator | None = None

    @property
    def schema(self) -> Mapping[str, Any] | None:
        schema = self.validator and self.validator.schema
        return schema if isinstance(schema, Mapping) else None

    def encode(self, value: Any, limit: int, target: str = "") -> Complete:
        """Return the outcome, with a `CallToolResult` in at most `limit` bytes of JSON.

        Raises InvalidResultError.
        """
        return sized(partial(self._result, value), limit)

    def _result(self, value: Any) -> dict[str, Any]:
        if isinstance(value, Result):
            result: dict[str, Any] = {"content": [block_of(block) for block in value.content]}
            if value.structured is not NOTHING:  # an error need not fit the schema
                structured = self._structured(value.structured, check=not value.is_error)
                result = {**structured, "content": result["content"] or structured["content"]}
            elif self.validator is not None and not value.is_error:
                raise InvalidResultError("there is an output schema but no structured content")
            if value.is_error:
                result["isError"] = True
            return result
        if isinstance(value, str) and self.validator is None:
            return {"content": [{"type": "text", "text": str.__str__(value)}]}
        if _has_content(value):
            return self._mixed(value)
        if self.validator is not None:
            return self._structured(value)
        if value is None or value in ([], ()):
            return {"content": []}
        return self._structured(value)

    def _mixed(self, value: Any) -> dict[str, Any]:
        """Return content, and the texts and JSON between it as blocks of text. With an output schema the
        structured content is what is no content: that is sent once."""
        if isinstance(value, Mapping):
            raise InvalidResultError(
                "content is in an object: return it alone, in a list or in a Result"
            )
        items = value if isinstance(value, list | tuple) else (value,)
        content: list[dict[str, Any]] = []
        for item in items:
            if isinstance(item, BLOCKS):
                content.append(block_of(item))
            elif isinstance(item, str):
                content.append(text_block(str.__str__(item)))
            elif _has_content(item):
                content += self._mixed(item)["content"]
            elif item is not None:
                content += Returns()._structured(item)["content"]
        if self.validator is None:
            return {"content": content}
        rest = [item for item in items if not _has_content(item)]
        return {**self._structured(rest), "content": content}

    def _structured(self, value: Any, *, check: bool = True) -> dict[str, Any]:
        plain = self.adapter.dump_python(value, mode="json", by_alias=True, warnings=False)
        encoded, plain = dump_json(plain)
        # JSON encoders write NaN as null without an error, so only a null can be a NaN.
        if b"null" in encoded and is_infinite(self.adapter.dump_python(value, warnings=False)):
            raise InvalidResultError("the result holds NaN or an infinite number")
        problems = self.validator.problems(plain) if self.validator and check else ()
        if problems:
            raise InvalidResultError("; ".join(map(str, problems)))
        return {"content": [text_block(encoded.decode())], "structuredContent": plain}


def _has_content(value: Any) -> bool:
    """Whether a value is content, or a list or an object with content anywhere in it."""
    if isinstance(value, Mapping):
        return any(map(_has_content, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_has_content, value))
    return isinstance(value, BLOCKS)


def sized(make: Callable[[], dict[str, Any]], limit: int) -> Complete:
    """Return an outcome whose result is JSON of at most `limit` bytes. Raises InvalidResultError otherwise."""
    try:
        result = make()
        try:
            size = len(orjson.dumps(result))
        except TypeError:  # perhaps for half of a surrogate pair
            result = without_lone_surrogates(result)
            size = len(orjson.dumps(result))
    except InvalidResultError:
        raise
    except Exception as error:
        raise InvalidResultError(f"the result cannot be JSON: {reason_of(error)}") from error
    if size > limit:
        message = f"The result is too large: more than {limit} bytes."
        raise InvalidResultError(f"the result has {size} bytes, more than {limit}", message)
    return Complete(result, size)


def returns_of(annotation: Any, output_schema: Mapping[str, Any] | None) -> Returns:
    """Return the encoder for a return annotation, or for the given output schema.

    Raises SignatureError, or pydantic's error for an annotation that it cannot serialize.
    """
    if output_schema is not None:
        return Returns(ANYTHING, output_validator(output_schema))
    # Text, content or nothing, or a union or a list with content: then there is no output schema.
    leaves = _leaves(annotation)
    if any(map(_is_content, leaves)) or all(leaf in WORDS for leaf in leaves):
        return Returns()
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    return Returns(adapter, output_validator(schema_of(adapter, "serialization")))


def _leaves(annotation: Any) -> list[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        return _leaves(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return [leaf for choice in get_args(annotation) for leaf in _leaves(choice)]
    return [annotation]


def _is_content(leaf: Any) -> bool:
    if get_origin(leaf) in LISTS:
        items = [item for item in get_args(leaf) if item is not Ellipsis]
        return any(_is_content(part) for item in items for part in _leaves(item))
    return isinstance(leaf, type) and issubclass(leaf, (Result, *BLOCKS))


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def block_of(block: Content) -> dict[str, Any]:
    return block.model_dump(mode="json", by_alias=True, exclude_none=True)
