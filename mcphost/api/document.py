"""The OpenAPI 3.1 document of the API, made of the routes and what is declared beside their methods.

It has no word of OpenAPI 3.0: schemas are those of pydantic (JSON Schema 2020-12), so null is a type.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Any, Final, NamedTuple

import orjson
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern
from django.urls.converters import UUIDConverter
from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, models_json_schema

from mcphost.api.bodies import MERGE_PATCH
from mcphost.api.operations import SAFE_METHODS, ApiOperation, scope_for
from mcphost.api.problems import MEDIA_TYPE
from mcphost.api.representations import ListPage, NoFields, wire_names

JSON: Final = "application/json"
METHODS: Final = ("get", "post", "put", "patch", "delete")
_SCHEMAS: Final = "#/components/schemas/"
_OBJECT_IDS: Final = {"get": "get", "put": "replace", "patch": "update", "delete": "delete"}
_ABOUT: Final = (
    "Programs can do here what people do in the console. A refused request is answered with a problem that says "
    "why (RFC 9457). To change what exists, send the ETag that was read as If-Match; to repeat a POST safely, send "
    "the same Idempotency-Key."
)
_PROBLEM: Final[Mapping[str, Any]] = {
    "type": "object",
    "description": "Why a request is refused (RFC 9457).",
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "instance": {"type": "string", "format": "uri-reference"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "pointer": {
                        "type": "string",
                        "description": "The JSON pointer of a field, or the name of a parameter.",
                    },
                    "code": {"type": "string"},
                    "detail": {"type": "string"},
                },
                "required": ["pointer", "code", "detail"],
            },
        },
    },
    "required": ["type", "title", "status", "detail", "instance"],
}
_HEADERS: Final = {
    "ETag": {"schema": {"type": "string"}, "description": "Of this object, for If-Match."},
    "Location": {
        "schema": {"type": "string", "format": "uri-reference"},
        "description": "Where the new object is.",
    },
    "Idempotent-Replayed": {
        "schema": {"const": "true"},
        "description": "This is the response to an earlier request with the Idempotency-Key.",
    },
}


class DocumentedOperation(NamedTuple):
    """One method of one route."""

    name: str
    method: str
    route: URLPattern
    operation: ApiOperation

    @property
    def id(self) -> str:
        """The operationId, for example `list_tools`, `create_tool`, `tool_publish`."""
        returns = self.operation.returns
        if returns is not None and issubclass(returns, ListPage):
            return f"list_{self.name}"
        if self.operation.creates:
            return f"create_{self.name.removesuffix('s')}"
        return f"{_OBJECT_IDS[self.method]}_{self.name}" if self.method != "post" else self.name

    @property
    def tag(self) -> str:
        """The collection that it belongs to."""
        collection = str(self.route.pattern).rpartition("slug>/")[2].partition("/")[0]
        return "tenants" if self.name.startswith("tenant") else collection

    @property
    def words(self) -> dict[str, str]:
        """What its summary may name."""
        options = {name: str(value) for name, value in self.route.default_args.items()}
        one_type = options.get("primitive_type", "").replace("template", "resource template")
        return {
            "type": one_type,
            "types": f"{one_type}s",
            "Verb": options.get("verb", "").capitalize(),
        }

    @property
    def example(self) -> Mapping[str, Any]:
        """A body that works."""
        return self.operation.example_for(self.route.default_args.get("primitive_type"))


class _ApiSchemas(GenerateJsonSchema):
    """JSON Schemas without a title for each field: it would only repeat the name."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def operations(routes: Iterable[URLPattern]) -> Iterator[DocumentedOperation]:
    """Yield all operations, in the order of the routes."""
    for route in routes:
        view: Any = vars(route.callback)["view_class"]
        for method in METHODS:
            handler = getattr(view, method, None)
            if handler is not None:
                yield DocumentedOperation(str(route.name), method, route, handler.operation)


def document(routes: Iterable[URLPattern]) -> bytes:
    """Return the document, as JSON in a fixed order."""
    described = tuple(operations(routes))
    paths: dict[str, dict[str, Any]] = {}
    for documented in described:
        path = _path(documented.route)
        parameters = {"parameters": list(_path_parameters(documented.route))}
        entry = paths.setdefault(path, parameters if parameters["parameters"] else {})
        entry[documented.method] = _operation(documented)
    openapi = {
        "openapi": "3.1.1",
        "info": {"title": "mcphost administration API", "version": "1", "description": _ABOUT},
        "servers": [{"url": "/api/v1"}],
        "security": [{"token": []}, {"session": []}],
        "paths": paths,
        "components": {
            "schemas": _components(described),
            "headers": _HEADERS,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "mcphost_session",
                    "description": "The console's session. It may only read.",
                },
            },
        },
    }
    return orjson.dumps(openapi, option=orjson.OPT_INDENT_2).replace(b'Representation"', b'"')


def describe(routes: Iterable[URLPattern], request: HttpRequest) -> HttpResponse:
    """Answer with the document. It is the same for all, so it needs no credential."""
    return HttpResponse(_cached_document(tuple(routes)), content_type=JSON)


_cached_document: Final = cache(document)


def view_of(routes: Iterable[URLPattern]) -> Any:
    """Return the view of the document of these routes."""
    return partial(describe, tuple(routes))


def _path(route: URLPattern) -> str:
    parts = str(route.pattern).split("/")
    return "/" + "/".join(
        f"{{{part.strip('<>').partition(':')[2]}}}" if part.startswith("<") else part
        for part in parts
    )


def _path_parameters(route: URLPattern) -> Iterator[dict[str, Any]]:
    for name, converter in route.pattern.converters.items():
        is_uuid = isinstance(converter, UUIDConverter)
        schema = (
            {"type": "string", "format": "uuid"}
            if is_uuid
            else {"type": "string", "pattern": f"^{converter.regex}$"}
        )
        yield {"name": name, "in": "path", "required": True, "schema": schema}


def _operation(described: DocumentedOperation) -> dict[str, Any]:
    operation, method = described.operation, described.method
    permission = operation.permission
    right = "" if permission is None else f", and the permission `{permission.value}`"
    entry: dict[str, Any] = {
        "operationId": described.id,
        "summary": operation.summary.format_map(described.words),
        "description": f"Needs the scope `{scope_for(method.upper())}`{right}.",
        "tags": [described.tag],
    }
    if parameters := [*_query_parameters(operation), *_header_parameters(operation, method)]:
        entry["parameters"] = parameters
    if operation.body is not NoFields:
        entry["requestBody"] = _request_body(described)
    entry["responses"] = _responses(operation, method)
    if method.upper() not in SAFE_METHODS:
        entry["security"] = [{"token": []}]
    return entry


def _query_parameters(operation: ApiOperation) -> Iterator[dict[str, Any]]:
    schema = operation.query.model_json_schema(schema_generator=_ApiSchemas)
    definitions = schema.get("$defs", {})
    for name, part in schema.get("properties", {}).items():
        options = part.get("anyOf", [part])
        branch = next(option for option in options if option != {"type": "null"})
        if "$ref" in branch:
            branch = definitions[branch["$ref"].rpartition("/")[2]]
        described = {
            key: value
            for key, value in branch.items()
            if key not in ("title", "default", "description")
        }
        parameter = {"name": name, "in": "query", "schema": described}
        if "description" in part:
            parameter["description"] = part["description"]
        yield parameter


def _header_parameters(operation: ApiOperation, method: str) -> Iterator[dict[str, Any]]:
    text = {"type": "string"}
    if operation.conditional:
        yield {
            "name": "If-Match",
            "in": "header",
            "required": True,
            "schema": {"type": "string", "pattern": '^(\\*|"[!#-~]*"(, *"[!#-~]*")*)$'},
            "description": "The ETag of the object, or * for any.",
        }
    if method == "get" and _is_object(operation):
        about = "An ETag that was read: 304 without a body if nothing changed since."
        yield {"name": "If-None-Match", "in": "header", "schema": text, "description": about}
    if method == "post":
        key = {"type": "string", "pattern": "^[!-~]{1,255}$"}
        about = "A text of your choice. A repeated request with it gets the first response."
        yield {"name": "Idempotency-Key", "in": "header", "schema": key, "description": about}


def _is_object(operation: ApiOperation) -> bool:
    return operation.returns is not None and not issubclass(operation.returns, ListPage)


def _request_body(described: DocumentedOperation) -> dict[str, Any]:
    operation = described.operation
    schema = {"$ref": _SCHEMAS + _body_name(described.method, operation)}
    content: dict[str, Any] = {"schema": schema, "example": dict(described.example)}
    media_types = (MERGE_PATCH, JSON) if operation.merges is not None else (JSON,)
    needed = any(field.is_required() for field in operation.body.model_fields.values())
    return {
        "required": needed and operation.merges is None,
        "content": dict.fromkeys(media_types, content),
    }


def _responses(operation: ApiOperation, method: str) -> dict[str, Any]:
    success: dict[str, Any] = {"description": "Done."}
    names = []
    if operation.returns is not None:
        ref = {"$ref": _SCHEMAS + operation.returns.__name__}
        success["content"] = {JSON: {"schema": ref}}
    if operation.media_types:
        text = {"schema": {"type": "string"}}
        success["content"] = dict.fromkeys(operation.media_types, text)
    if _is_object(operation):
        names.append("ETag")
    if operation.creates:
        names.append("Location")
    if method == "post":
        names.append("Idempotent-Replayed")
    if names:
        success["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in names}
    responses: dict[str, Any] = {str(operation.status): success}
    if method == "get" and _is_object(operation):
        responses["304"] = {"description": "The client has it already."}
    problem = {"schema": {"$ref": f"{_SCHEMAS}Problem"}}
    responses["default"] = {"description": "A problem.", "content": {MEDIA_TYPE: problem}}
    return responses


def _body_name(method: str, operation: ApiOperation) -> str:
    """Return the name of the schema of a body: a patch has no required fields, and what replaces an
    object may have those that only the server writes."""
    suffix = {"put": "Replacement", "patch": "Patch"}.get(method, "")
    return f"{operation.body.__name__}{suffix}"


def _components(described: Iterable[DocumentedOperation]) -> dict[str, Any]:
    models: dict[tuple[type[BaseModel], JsonSchemaMode], None] = {}
    for documented in described:
        operation = documented.operation
        if operation.returns is not None:
            models[operation.returns, "serialization"] = None
        if operation.body is not NoFields:
            models[operation.body, "validation"] = None
    _, generated = models_json_schema(
        list(models), ref_template=f"{_SCHEMAS}{{model}}", schema_generator=_ApiSchemas
    )
    schemas: dict[str, Any] = dict(generated["$defs"])
    for documented in described:
        operation, method = documented.operation, documented.method
        if operation.body is NoFields or method not in ("put", "patch"):
            continue
        schema = schemas[operation.body.__name__]
        derived = (
            _patch_of(schema) if method == "patch" else _replacement_of(schema, operation, schemas)
        )
        schemas[_body_name(method, operation)] = derived
    return {"Problem": _PROBLEM, **dict(sorted(schemas.items()))}


def _patch_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of a merge patch: any fields, where null removes one."""
    properties = {
        name: part if "anyOf" in part else {"anyOf": [_without_default(part), {"type": "null"}]}
        for name, part in schema["properties"].items()
    }
    patch = {name: value for name, value in schema.items() if name not in ("required", "title")}
    return {**patch, "properties": {name: _without_default(p) for name, p in properties.items()}}


def _replacement_of(
    schema: Mapping[str, Any], operation: ApiOperation, schemas: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the schema of a whole object: what only the server writes may be sent back as it was."""
    assert operation.returns is not None
    shown = schemas[operation.returns.__name__]["properties"]
    read_only = {
        name: {**shown[name], "readOnly": True}
        for name in wire_names(operation.returns)
        if name not in schema["properties"]
    }
    whole = {name: value for name, value in schema.items() if name != "title"}
    return {**whole, "properties": {**schema["properties"], **read_only}}


def _without_default(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name != "default"}
