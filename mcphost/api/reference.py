"""The page `/api/docs/`: the OpenAPI document for readers, one section for each operation.

It is the same for all, and has no data of a tenant. Its script sends requests with a token that the reader
types; the browser keeps it in memory only.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final, NamedTuple

import orjson
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.urls import URLPattern

from mcphost.api.document import METHODS, document

_HTML: Final = "text/html; charset=utf-8"
_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")


class ReferenceField(NamedTuple):
    """A parameter of a request, or a member of an object. `schema` is the component that it has."""

    name: str
    location: str
    type: str
    schema: str
    is_required: bool
    description: str


class ReferenceAnswer(NamedTuple):
    """A response of an operation. `schema` is its component; empty if it has no body."""

    status: str
    description: str
    media_type: str
    schema: str


class ReferenceSection(NamedTuple):
    """An operation. `example` is the body of a request that works; empty if it has none."""

    id: str
    method: str
    path: str
    summary: str
    description: str
    parameters: Sequence[ReferenceField]
    media_type: str
    body: str
    example: str
    answers: Sequence[ReferenceAnswer]

    @property
    def curl(self) -> str:
        """The request as a command. What is in capitals is to be replaced."""
        address = _PLACEHOLDER.sub(lambda match: match[1].upper(), self.path)
        headers = ["Authorization: Bearer $TOKEN"]
        headers += [
            f"{parameter.name}: ETAG"
            for parameter in self.parameters
            if parameter.location == "header" and parameter.is_required
        ]
        if self.media_type:
            headers.append(f"Content-Type: {self.media_type}")
        lines = [f'curl -X {self.method} "$SERVER/api/v1{address}"']
        lines += [f'-H "{header}"' for header in headers]
        if self.example:
            quoted = self.example.replace("'", "'\\''")
            lines.append(f"--data-raw '{quoted}'")
        return " \\\n  ".join(lines)


class ReferenceSchema(NamedTuple):
    """A component of the document."""

    name: str
    description: str
    members: Sequence[ReferenceField]


def reference_of(openapi: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the page shows of a document: sections by tag, and the schemas."""
    groups: dict[str, list[ReferenceSection]] = {}
    for path, entry in openapi["paths"].items():
        for method in METHODS:
            if method in entry:
                section = _section(path, method, entry)
                groups.setdefault(entry[method]["tags"][0], []).append(section)
    schemas = [_schema(name, schema) for name, schema in openapi["components"]["schemas"].items()]
    return {"info": openapi["info"], "groups": groups, "schemas": schemas}


def show_reference(routes: tuple[URLPattern, ...], request: HttpRequest) -> HttpResponse:
    """Answer with the page."""
    return HttpResponse(_page(routes), content_type=_HTML)


def reference_view(routes: Iterable[URLPattern]) -> Any:
    """Return the view of the page for these routes."""
    return partial(show_reference, tuple(routes))


@cache
def _page(routes: tuple[URLPattern, ...]) -> str:
    return render_to_string("api/reference.html", reference_of(orjson.loads(document(routes))))


def _section(path: str, method: str, entry: Mapping[str, Any]) -> ReferenceSection:
    operation = entry[method]
    content = operation.get("requestBody", {}).get("content", {})
    media_type = next(iter(content), "")
    body = content.get(media_type, {})
    parameters = [*entry.get("parameters", ()), *operation.get("parameters", ())]
    return ReferenceSection(
        id=operation["operationId"],
        method=method.upper(),
        path=path,
        summary=operation["summary"],
        description=operation["description"],
        parameters=[_parameter(parameter) for parameter in parameters],
        media_type=media_type,
        body=_component(body.get("schema", {})),
        example=_json(body["example"]) if "example" in body else "",
        answers=list(_answers(operation["responses"])),
    )


def _parameter(parameter: Mapping[str, Any]) -> ReferenceField:
    return ReferenceField(
        name=parameter["name"],
        location=parameter["in"],
        type=type_of(parameter["schema"]),
        schema="",
        is_required=parameter.get("required", False),
        description=parameter.get("description", ""),
    )


def _answers(responses: Mapping[str, Any]) -> Iterator[ReferenceAnswer]:
    for status, response in responses.items():
        content = response.get("content", {})
        media_type = next(iter(content), "")
        schema = content.get(media_type, {}).get("schema", {})
        yield ReferenceAnswer(
            "others" if status == "default" else status,
            response["description"],
            media_type,
            _component(schema),
        )


def _schema(name: str, schema: Mapping[str, Any]) -> ReferenceSchema:
    required = schema.get("required", ())
    members = [
        ReferenceField(
            name=member,
            location="read only" if part.get("readOnly") else "",
            type=type_of(part),
            schema=next((_component(option) for option in _options(part)), ""),
            is_required=member in required,
            description=part.get("description", ""),
        )
        for member, part in schema.get("properties", {}).items()
    ]
    values = f"One of {', '.join(schema['enum'])}." if "enum" in schema else ""
    return ReferenceSchema(name, schema.get("description", values), members)


def type_of(schema: Mapping[str, Any]) -> str:
    """Return the type of a schema in words, such as `list of string, or null`."""
    if "anyOf" in schema:
        return ", or ".join(type_of(option) for option in schema["anyOf"])
    if "$ref" in schema:
        return _component(schema)
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return " | ".join(_json(value) for value in values)
    if schema.get("type") == "array":
        return f"list of {type_of(schema.get('items', {}))}"
    name = str(schema.get("format") or schema.get("type") or "any value")
    return name.replace("_", " ")


def _options(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the parts of a schema that name a component."""
    parts = [schema, schema.get("items", {}), *schema.get("anyOf", ())]
    yield from (part for part in parts if "$ref" in part)


def _component(schema: Mapping[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _json(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
