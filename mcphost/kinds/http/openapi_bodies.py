"""The bodies of operations: which of the media types is sent, and what its argument is.

The order of media types in a document means nothing: JSON is taken where there is JSON, then a form, then
text if the schema is one of text, then bytes.
"""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mcphost.kinds.http.configs import (
    JSON_TYPE,
    MAX_MEDIA_TYPE,
    SAFE,
    WRITABLE_TYPE,
    is_json_type,
)
from mcphost.kinds.http.openapi_forms import BASE64, FormReader
from mcphost.kinds.http.openapi_parameters import BODY, OperationArgument, placeholder
from mcphost.kinds.http.openapi_references import References, UnsupportedError
from mcphost.kinds.http.openapi_schemas import Schemas

FORM: Final = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data"
OCTETS: Final = "application/octet-stream"
_ANY: Final = ("*/*", "application/*")
_TEXTS: Final = re.compile(
    r"text/[a-z0-9.+*-]+|application/(xml|(x-)?yaml|(x-)?ndjson|(x-)?jsonl(ines)?|json-seq|graphql|sql"
    r"|javascript|toml|csv)|[a-z]+/[a-z0-9.+-]+\+(xml|yaml)"
)
_CHARSET: Final = re.compile(r";\s*charset\s*=\s*\"?([^\s;\"]+)", re.IGNORECASE)
_MEDIA_TYPE: Final = re.compile(r"[a-z0-9!#$&^_.+-]+/[a-z0-9!#$&^_.+-]+")
_SCALARS: Final = frozenset({"string", "number", "integer", "boolean"})


class RequestBody(NamedTuple):
    """A body in the format of the configuration, and its argument."""

    config: dict[str, Any]
    argument: OperationArgument


class _Media(NamedTuple):
    """A media type of the document: as it is written there, without parameters, and its object."""

    written: str
    name: str
    media: Mapping[str, Any]


class BodyReader:
    """Reads the body of one operation. What is left out is added to `notes`."""

    def __init__(self, references: References, schemas: Schemas, notes: list[str]) -> None:
        self._references = references
        self._schemas = schemas
        self._notes = notes
        self._forms = FormReader(references, schemas, notes)

    def read(self, written: Any, method: str) -> RequestBody | None:
        """Return the body of a request, None for one without. Raises UnsupportedError."""
        body = self._references.follow(written)
        if body is None:
            return None
        content = self._references.follow(body.get("content")) if isinstance(body, Mapping) else 0
        if not isinstance(content, Mapping):
            raise UnsupportedError("its body has no content")
        required = body.get("required") is True
        if method.upper() in SAFE:
            if required:
                raise UnsupportedError(f"a body is not possible with {method.upper()}")
            self._notes.append(f"Its body is left out: {method.upper()} has none.")
            return None
        problems: list[UnsupportedError] = []
        for media in sorted(self._media_types(content), key=self._rank):
            noted = len(self._notes)
            try:
                config, schema = self._body(media)
                argument = OperationArgument(
                    BODY, BODY, BODY, self._schemas.convert(schema), required
                )
                return RequestBody(config, argument)
            except UnsupportedError as error:
                problems.append(error)
                del self._notes[noted:]
        types = ", ".join(str(name) for name in content) or "no type"
        raise problems[0] if problems else UnsupportedError(f"a body of {types} is not supported")

    def _media_types(self, content: Mapping[str, Any]) -> list[_Media]:
        return [
            _Media(
                written.strip(),
                written.partition(";")[0].strip().lower(),
                self._references.follow_object(media),
            )
            for written, media in content.items()
        ]

    def _rank(self, media: _Media) -> int:
        if media.name == JSON_TYPE:
            return 0
        if is_json_type(media.name):
            return 1
        if media.name in _ANY:
            return 5 if self._is_bytes(media) else 2
        if media.name == FORM:
            return 3
        if media.name == MULTIPART:
            return 3 if self._has_files(media) else 4
        return 6 if _TEXTS.fullmatch(media.name) else 7

    def _has_files(self, media: _Media) -> bool:
        return any(
            self._forms.is_file(part)
            for node in self._references.variants(media.media.get("schema"))
            for part in _values(node.get("properties"))
        )

    def _is_base64(self, schema: Any) -> bool:
        """Whether a text is bytes that are written in Base64."""
        return any(
            node.get("format") in ("byte", "base64")
            or str(node.get("contentEncoding")).lower().startswith("base64")
            for node in self._references.variants(schema)
        )

    def _is_bytes(self, media: _Media) -> bool:
        return self._forms.is_file(media.media.get("schema"))

    def _body(self, media: _Media) -> tuple[dict[str, Any], Any]:
        """Return the configuration of a body, and the schema of its argument."""
        schema = media.media.get("schema", True)
        _check_charset(media.written)
        is_any = media.name in _ANY
        if is_json_type(media.name) or (is_any and not self._is_bytes(media)):
            body = {"type": "json", "value": placeholder(BODY)}
            media_type = JSON_TYPE if is_any else _sendable(media.written)
            return {**body, **_unless_default(media_type, JSON_TYPE)}, schema
        if media.name in (FORM, MULTIPART):
            form = self._forms.read(media.media, with_files=media.name == MULTIPART)
            return form.config, form.schema
        types = self._references.types(schema)
        if types and not types & _SCALARS:
            raise UnsupportedError(
                f"its body is {media.name[:100]}, and what it describes is no text: nothing says how it "
                "is written"
            )
        if _TEXTS.fullmatch(media.name):
            media_type = "text/plain" if media.name == "text/*" else _sendable(media.written)
            body = {"type": "text", "text": placeholder(BODY), "media_type": media_type}
            return body, schema if types and types <= _SCALARS else _text_of(schema)
        if self._is_base64(schema) and not is_any:
            # The text itself is sent (OpenAPI 3.0, "Considerations for File Uploads"; 3.1, "Schema Object").
            media_type = _sendable(media.written)
            return {"type": "text", "text": placeholder(BODY), "media_type": media_type}, schema
        if not (is_any or _MEDIA_TYPE.fullmatch(media.name)) or types - {"string"}:
            raise UnsupportedError(f"a body of {media.written[:100]} is not supported")
        octets = OCTETS if is_any else _sendable(media.written)
        body = {"type": "bytes", "content": placeholder(BODY)}
        about = schema.get("description") if isinstance(schema, Mapping) else None
        text = f"{about} {BASE64}" if isinstance(about, str) else BASE64
        argument = {"type": "string", "contentEncoding": "base64", "description": text}
        return {**body, **_unless_default(octets, OCTETS)}, argument


def _values(properties: Any) -> list[Any]:
    return list(properties.values()) if isinstance(properties, Mapping) else []


def _text_of(schema: Any) -> dict[str, Any]:
    """Return the schema of the text for a schema that allows others, too."""
    text: dict[str, Any] = {"type": "string"}
    if isinstance(schema, Mapping):
        text |= {key: schema[key] for key in ("description", "example") if key in schema}
    return text


def _sendable(media_type: str) -> str:
    """Return a media type as it is written. Raises UnsupportedError if a request cannot have it."""
    if not WRITABLE_TYPE.fullmatch(media_type) or len(media_type) > MAX_MEDIA_TYPE:
        raise UnsupportedError(f"a body of {media_type[:100]} is not supported")
    return media_type


def _unless_default(media_type: str, default: str) -> dict[str, str]:
    return {} if media_type.lower() == default else {"media_type": media_type}


def _check_charset(media_type: str) -> None:
    matched = _CHARSET.search(media_type)
    if matched and matched[1].lower() not in ("utf-8", "utf8", "us-ascii"):
        raise UnsupportedError(f"its body is in {matched[1][:40]}, and texts are sent as UTF-8")
