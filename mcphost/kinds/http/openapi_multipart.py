"""Bodies of `multipart/form-data` in OpenAPI documents: which of the properties are files."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mcphost.kinds.http.openapi_schemas import References, UnsupportedError, object_of

BASE64 = "The content of the file in Base64."


class Uploads(NamedTuple):
    """A media type with files taken out.

    `schema` is that of the argument, in which files are Base64; `files` are in the format of the
    configuration; `others` is the media type with the other properties only.
    """

    schema: Mapping[str, Any]
    files: list[dict[str, Any]]
    others: Mapping[str, Any]


def uploads(
    media: Mapping[str, Any], references: References, placeholder: Callable[[str], str]
) -> Uploads:
    """Take the files out of a media type. `placeholder` writes that of a property of the body.

    Raises UnsupportedError if the properties are not known.
    """
    schema = references.follow(media.get("schema"))
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or not properties:
        raise UnsupportedError("its multipart/form-data does not say which fields it has")
    encoding = {name: object_of(each) for name, each in object_of(media.get("encoding")).items()}
    arguments, files = dict(properties), []
    for name, written in properties.items():
        property_ = references.follow(written)
        each = _items(property_, references)
        if not _is_file(each):
            if _is_object(each) and "style" not in encoding.get(name, {}):
                encoding[name] = {"style": "json"}  # OpenAPI 3.1, "Encoding Object": the default
            continue
        text = {"type": "string", "contentEncoding": "base64", "description": _about(property_)}
        arguments[name] = text if each is property_ else {**property_, "items": text}
        called = f"{name}_file_name"
        if called not in properties:
            arguments[called] = {"type": "string", "description": f"The name of the file {name}."}
        files.append(
            {
                "name": name,
                "content": placeholder(name),
                "file_name": "" if called in properties else placeholder(called),
                "media_type": _media_type(encoding.get(name, {}), each),
            }
        )
    names = {file["name"] for file in files}
    others = {name: each for name, each in properties.items() if name not in names}
    rest = {**media, "schema": {"properties": others}, "encoding": encoding}
    return Uploads({**schema, "properties": arguments}, files, rest)


def _items(schema: Any, references: References) -> Any:
    """Return the schema of a list's items, or the schema itself."""
    is_list = isinstance(schema, Mapping) and schema.get("type") == "array"
    return references.follow(schema.get("items")) if is_list else schema


def _is_file(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return False
    is_bytes = "contentMediaType" in schema and "contentEncoding" not in schema
    return schema.get("format") == "binary" or is_bytes


def _is_object(schema: Any) -> bool:
    return isinstance(schema, Mapping) and (
        schema.get("type") == "object" or "properties" in schema
    )


def _about(schema: Mapping[str, Any]) -> str:
    return f"{schema.get('description', '')} {BASE64}".strip()


def _media_type(encoding: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Return the type of a file; empty if the document leaves a choice."""
    given = str(encoding.get("contentType") or schema.get("contentMediaType") or "")
    return "" if "," in given or "*" in given else given
