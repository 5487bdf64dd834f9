"""Forms in OpenAPI documents: their fields, and which of them are files."""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from mcphost.kinds.http.configs import MAX_FIELDS, WRITABLE_TYPE, is_json_type
from mcphost.kinds.http.openapi_parameters import BODY, encoding_of, placeholder
from mcphost.kinds.http.openapi_references import References, UnsupportedError
from mcphost.kinds.http.openapi_schemas import Schemas

BASE64: Final = "The content of the file in Base64."
_STYLES: Final = ("form", "spaceDelimited", "pipeDelimited", "deepObject")
_SCALARS: Final = frozenset({"string", "number", "integer", "boolean"})
_MAX_LEVELS: Final = 50
_MAX_SCHEMAS: Final = 1_000
"""How many schemas a form may be composed of, counting every reference: a schema that refers to itself
twice would otherwise be read exponentially often."""
_NO_TEXT: Final = re.compile(
    r"(image|audio|video|font)/(?!svg\+xml)\S+|application/(octet-stream|pdf|zip|gzip)",
    re.IGNORECASE,
)
"""Media types of binary content."""


class _FormMembers(NamedTuple):
    """The properties of an object, whatever the schemas that it is composed of.

    `additional` is the schema of other properties: None if the document says nothing of them.
    """

    properties: Mapping[str, Any]
    required: frozenset[str]
    additional: Any = None


class FormDescription(NamedTuple):
    """A form: its configuration, and the schema of its argument as a schema of the document."""

    config: dict[str, Any]
    schema: Mapping[str, Any]


class FormReader:
    """Reads one form. What is left out is added to `notes`."""

    def __init__(self, references: References, schemas: Schemas, notes: list[str]) -> None:
        self._references = references
        self._schemas = schemas
        self._notes = notes
        self._schemas_read = 0

    def read(self, media: Mapping[str, Any], *, with_files: bool) -> FormDescription:
        """Return the form of a media type. Raises UnsupportedError."""
        name = "multipart/form-data" if with_files else "application/x-www-form-urlencoded"
        self._schemas_read = 0
        members = self._members(media.get("schema"), 0)
        if not members.properties and members.additional in (None, False):
            raise UnsupportedError(f"its {name} does not say which fields it has")
        noted = len(self._notes)
        config, properties = self._form(members, encoding_of(media, self._references), with_files)
        additional = members.additional
        if (
            additional not in (None, False)
            and not self._is_deep(additional)
            and not self.is_file(additional)
        ):
            config["more"] = placeholder(BODY)
        elif not config["fields"] and "files" not in config:
            why = " ".join(
                ["none of the fields of its", name, "can be written.", *self._notes[noted:]]
            )
            raise UnsupportedError(why.rstrip("."))
        schema = _object_schema(media, members, properties, "more" in config)
        return FormDescription(config, schema)

    def _form(
        self, members: _FormMembers, encodings: Mapping[str, Mapping[str, Any]], with_files: bool
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the configuration of a form, and the properties of its argument."""
        fields: list[dict[str, Any]] = []
        files: list[dict[str, Any]] = []
        properties: dict[str, Any] = {}
        write = self._part if with_files else self._field
        for member, schema in members.properties.items():
            if self._schemas.is_read_only(schema):
                continue
            encoding = encodings.get(member, {})
            try:
                self.check_part_headers(member, encoding, with_files)
                if with_files and self.is_file_part(schema, encoding):
                    files.append(self._file(member, schema, encoding, members, properties))
                    continue
                field = write(member, schema, encoding)
                if len(fields) == MAX_FIELDS:
                    raise UnsupportedError(f"there are more than {MAX_FIELDS} fields")
            except UnsupportedError as error:
                if member in members.required:
                    raise
                self._notes.append(f"The field {member!r} is left out: {error}.")
            else:
                fields.append(field)
                properties[member] = schema
        config: dict[str, Any] = {"type": "multipart" if with_files else "form", "fields": fields}
        return {**config, "files": files} if files else config, properties

    def check_part_headers(self, name: str, encoding: Mapping[str, Any], with_files: bool) -> None:
        """Note headers of a part, which are not sent. Raises UnsupportedError for a required one."""
        headers = self._references.follow_object(encoding.get("headers")) if with_files else {}
        for header, written in headers.items():
            if header.lower() in ("content-type", "content-disposition"):
                continue
            if self._references.follow_object(written).get("required") is True:
                raise UnsupportedError(f"the part {name!r} needs the header {header[:100]!r}")
            self._notes.append(f"The header {header[:100]!r} of the part {name!r} is left out.")

    def is_file_part(self, schema: Any, encoding: Mapping[str, Any]) -> bool:
        """Whether a part is a file: by its schema, by a media type that no text has, or because it has no
        type at all (OpenAPI 3.1, "Encoding Object")."""
        if self.is_file(schema):
            return True
        nodes = list(self._references.variants(schema))
        types = self._references.types(schema)
        encoded = any(node.get("format") == "byte" or "contentEncoding" in node for node in nodes)
        if "style" in encoding or types - {"string"} or encoded:
            return False
        content_type = str(encoding.get("contentType") or "")
        if content_type:
            return all(_NO_TEXT.match(text.strip()) for text in content_type.split(","))
        return not types and self._references.has_siblings and isinstance(schema, Mapping)

    def _members(self, schema: Any, level: int) -> _FormMembers:
        node = self._references.follow(schema)
        if node is None or isinstance(node, bool) or level > _MAX_LEVELS:
            return _FormMembers({}, frozenset())
        self._schemas_read += 1
        if self._schemas_read > _MAX_SCHEMAS:
            raise UnsupportedError(f"its form is composed of more than {_MAX_SCHEMAS} schemas")
        if not isinstance(node, Mapping):
            raise UnsupportedError("a schema is not an object")
        siblings = schema if isinstance(schema, Mapping) and schema is not node else {}
        members = self._own_members(node)
        if siblings and self._references.has_siblings:
            members = _all_of(members, self._own_members(siblings))
        for branch in _branches(node, "allOf"):
            members = _all_of(members, self._members(branch, level + 1))
        for keyword in ("anyOf", "oneOf"):
            branches = [
                self._members(branch, level + 1)
                for branch in _branches(node, keyword)
                if self._references.types(branch) != {"null"}
            ]
            if branches:
                members = _all_of(members, _any_of(branches))
        return members

    def _own_members(self, node: Mapping[str, Any]) -> _FormMembers:
        types = node.get("type")
        if types is not None and "object" not in (types if isinstance(types, list) else [types]):
            raise UnsupportedError("its form is not an object")
        properties, required = node.get("properties"), node.get("required")
        additional = node.get("additionalProperties")
        composed = any(keyword in node for keyword in ("allOf", "anyOf", "oneOf"))
        if types is not None and not properties and not composed and additional is None:
            additional = True  # an object that says nothing about its properties may have any
        return _FormMembers(
            properties if isinstance(properties, Mapping) else {},
            frozenset(map(str, required)) if isinstance(required, list) else frozenset(),
            additional,
        )

    def _field(self, name: str, schema: Any, encoding: Mapping[str, Any]) -> dict[str, Any]:
        """Return a property as a field (OpenAPI 3.1, "Encoding Object")."""
        style, explode = encoding.get("style"), encoding.get("explode")
        content_type = _first_type(encoding)
        if style is None:
            style = "json" if is_json_type(content_type) else "form"
        if style not in (*_STYLES, "json"):
            raise UnsupportedError(f"there is no style {style!r}")
        has_style = any(key in encoding for key in ("style", "explode", "allowReserved"))
        if content_type and style != "json" and not has_style and self._is_deep(schema):
            raise UnsupportedError(_not_writable(name, content_type))
        if style not in ("deepObject", "json") and self._references.is_nested(schema):
            raise UnsupportedError(
                f"{name!r} has lists or objects inside a list or an object, which style {style} "
                "does not define"
            )
        field = {"name": name, "value": placeholder(BODY, name), "style": style}
        reserved = {"allow_reserved": True} if encoding.get("allowReserved") is True else {}
        return {
            **field,
            "explode": explode if isinstance(explode, bool) else style == "form",
            **reserved,
        }

    def _is_deep(self, schema: Any) -> bool:
        types = self._references.types(schema)
        return "object" in types or self._references.is_nested(schema)

    def _part(self, name: str, schema: Any, encoding: Mapping[str, Any]) -> dict[str, Any]:
        """Return a property as a part of a form with files: an object is JSON, if nothing else is said."""
        if "style" in encoding:
            return self._field(name, schema, encoding)
        types = self._references.types(schema)
        content_type = _checked(name, _first_type(encoding, is_text=types == {"string"}))
        has_objects = self._is_deep(schema)
        if has_objects and content_type and not is_json_type(content_type):
            raise UnsupportedError(_not_writable(name, content_type))
        as_json = has_objects or is_json_type(content_type)
        is_open = not content_type and (not types or (has_objects and types & _SCALARS))
        style = "json" if as_json else "form"
        if is_open or (as_json and "array" in types):
            style = "part"  # each value of a list is a part (OpenAPI 3.1.1, "Encoding Object")
        media_type = content_type or ("application/json" if style == "json" else "")
        return {
            "name": name,
            "value": placeholder(BODY, name),
            "style": style,
            "explode": style != "json",
            **({"media_type": media_type} if media_type else {}),
        }

    def is_file(self, schema: Any) -> bool:
        """Whether a property, or what is in its list, is a file."""
        return any(
            _is_bytes(node) or any(map(_is_bytes, self._references.variants(node.get("items"))))
            for node in self._references.variants(schema)
        )

    def _file(
        self,
        name: str,
        schema: Any,
        encoding: Mapping[str, Any],
        members: _FormMembers,
        properties: dict[str, Any],
    ) -> dict[str, Any]:
        """Return a property as a file, and add the arguments that it becomes."""
        content = placeholder(BODY, name)
        nodes = list(self._references.variants(schema))
        lists = [node for node in nodes if node.get("type") == "array" or "items" in node]
        inner = [part for node in lists for part in self._references.variants(node.get("items"))]
        description = next(
            (n["description"] for n in nodes if isinstance(n.get("description"), str)), ""
        )
        text = {
            "type": "string",
            "contentEncoding": "base64",
            "description": f"{description} {BASE64}".strip(),
        }
        properties[name] = {**lists[0], "items": text} if lists else text
        declared_types = (
            n["contentMediaType"] for n in [*nodes, *inner] if "contentMediaType" in n
        )
        media_type = _checked(name, encoding.get("contentType") or next(declared_types, ""))
        argument = f"{name}_file_name"
        if argument not in members.properties:
            properties[argument] = {
                "type": "string",
                "description": f"The name of the file {name}.",
            }
        return {
            "name": name,
            "content": content,
            "file_name": "" if argument in members.properties else placeholder(BODY, argument),
            "media_type": self._file_type(name, media_type, members, properties),
        }

    def _file_type(
        self,
        name: str,
        media_type: str,
        members: _FormMembers,
        properties: dict[str, Any],
    ) -> str:
        """Return the media type of a file. If the document allows several, it is an argument."""
        choices = [text.strip() for text in media_type.split(",")]
        if len(choices) == 1 and "*" not in media_type:
            return media_type
        argument = f"{name}_content_type"
        if argument in members.properties:
            return ""
        description = f"The content type of the file {name}, such as image/png."
        properties[argument] = {"type": "string", "description": description}
        if "*" not in media_type:
            properties[argument]["enum"] = choices
        return placeholder(BODY, argument)


def _checked(name: str, media_type: Any) -> str:
    """Return media types that can be written. Raises UnsupportedError."""
    for text in str(media_type).split(",") if media_type else ():
        if not WRITABLE_TYPE.fullmatch(text.strip().replace("*", "any")):
            raise UnsupportedError(f"{name!r} is to be {text[:100]}, which is no media type")
    return str(media_type)


def _not_writable(name: str, content_type: str) -> str:
    return f"{name!r} may be an object or a nested list, which cannot be written as {content_type}"


def _branches(node: Mapping[str, Any], keyword: str) -> list[Any]:
    branches = node.get(keyword)
    return branches if isinstance(branches, list) else []


def _all_of(first: _FormMembers, second: _FormMembers) -> _FormMembers:
    additional = first.additional if first.additional is not None else second.additional
    return _FormMembers(
        _merged(first.properties, second.properties, "allOf"),
        first.required | second.required,
        additional,
    )


def _any_of(branches: list[_FormMembers]) -> _FormMembers:
    properties: Mapping[str, Any] = {}
    for members in branches:
        properties = _merged(properties, members.properties, "anyOf")
    additional = [
        members.additional for members in branches if members.additional not in (None, False)
    ]
    required = frozenset.intersection(*(members.required for members in branches))
    return _FormMembers(properties, required, additional[0] if additional else None)


def _merged(first: Mapping[str, Any], second: Mapping[str, Any], keyword: str) -> Mapping[str, Any]:
    merged = {**second, **first}
    for name in first.keys() & second.keys():
        if first[name] != second[name]:
            merged[name] = {keyword: [first[name], second[name]]}
    return {name: merged[name] for name in [*first, *(n for n in second if n not in first)]}


def _object_schema(
    media: Mapping[str, Any],
    members: _FormMembers,
    properties: Mapping[str, Any],
    has_more: bool,
) -> Mapping[str, Any]:
    schema = media.get("schema")
    description = schema.get("description") if isinstance(schema, Mapping) else None
    return {
        "type": "object",
        **({"description": description} if isinstance(description, str) else {}),
        "properties": properties,
        "required": sorted(members.required & properties.keys(), key=list(properties).index),
        # What the form would not send is refused.
        "additionalProperties": members.additional if has_more else False,
    }


def _first_type(encoding: Mapping[str, Any], *, is_text: bool = False) -> str:
    """Return the media type to send: the first that has no wildcard. JSON is preferred, except for a text,
    where it comes last."""
    types = [text.strip() for text in str(encoding.get("contentType") or "").split(",")]
    concrete = [text for text in types if "*" not in text]
    first = [name for name in concrete if is_json_type(name) is not is_text]
    return next(iter([*first, *concrete]), "")


def _is_bytes(schema: Mapping[str, Any]) -> bool:
    is_media = "contentMediaType" in schema and "contentEncoding" not in schema
    return schema.get("format") == "binary" or is_media
