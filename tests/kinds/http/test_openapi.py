"""Tests of OpenAPI documents that become HTTP tools."""

from typing import Any

import orjson
import pytest

from mcphost.kinds.http.configs import HttpToolConfig
from mcphost.kinds.http.openapi import document_notes, operations
from mcphost.kinds.http.openapi_documents import OpenApiError, read
from mcphost.kinds.http.openapi_servers import ServerAddress
from mcphost.protocol.schemas import check_schema
from mcphost.runtime.schema import Validator

PET = {"$ref": "#/components/schemas/Pet"}
JSON = "application/json"


def document(paths: dict[str, Any], version: str = "3.1.0", **more: Any) -> dict[str, Any]:
    return {
        "openapi": version,
        "info": {"title": "Pets", "version": "1"},
        "servers": [{"url": "https://api.example.com/v1/"}],
        "paths": paths,
        **more,
    }


def one(operation: dict[str, Any], *, path: str = "/pets", method: str = "get", **more: Any):
    (found,) = operations(document({path: {method: operation}}, **more))
    return found


def config(operation: dict[str, Any], **more: Any) -> HttpToolConfig:
    found = one(operation, **more)
    assert found.config is not None, found.problem
    return HttpToolConfig.model_validate(found.config)


def problem(operation: dict[str, Any], **more: Any) -> str:
    found = one(operation, **more)
    assert found.config is None
    return found.problem


def parameter(name: str, place: str, schema: Any = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "in": place, "schema": schema or {"type": "string"}, **more}


def body(schema: Any, media_type: str = JSON, **more: Any) -> dict[str, Any]:
    return {"content": {media_type: {"schema": schema}}, **more}


def test_an_operation_becomes_a_tool() -> None:
    found = one(
        {
            "operationId": "find pets!",
            "summary": "Find pets",
            "description": "Finds pets by their tag.",
            "parameters": [
                parameter("petId", "path", {"type": "integer"}, required=True),
                parameter("tag", "query", description="The tag"),
                parameter("X-Trace", "header"),
                parameter("Accept", "header"),
            ],
        },
        path="/pets/{petId}",
    )
    assert found[:4] == ("GET /pets/{petId}", "find_pets", "Find pets", "Finds pets by their tag.")
    assert found.config == {
        "source": "GET /pets/{petId}",
        "input_schema": {
            "type": "object",
            "properties": {
                "petId": {"type": "integer"},
                "tag": {"type": "string", "description": "The tag"},
                "X-Trace": {"type": "string"},
            },
            "required": ["petId"],
            "additionalProperties": False,
        },
        "request": {
            "method": "GET",
            "url": "https://api.example.com/v1/pets/{arguments.petId}",
            "query": [
                {"name": "tag", "value": "{arguments.tag}", "style": "form", "explode": True}
            ],
            "headers": [{"name": "X-Trace", "value": "{arguments.X-Trace}"}],
        },
    }


@pytest.mark.parametrize(
    ("given", "style", "explode"),
    [
        ({}, "form", True),
        ({"style": "pipeDelimited"}, "pipeDelimited", False),
        ({"style": "deepObject", "explode": True}, "deepObject", True),
    ],
)
def test_style_and_explode_of_the_query(given: dict[str, Any], style: str, explode: bool) -> None:
    (field,) = config({"parameters": [{**parameter("ids", "query"), **given}]}).request.query
    assert (field.style, field.explode) == (style, explode)


def test_a_json_body_becomes_one_argument() -> None:
    read = config(
        {"requestBody": body(PET, required=True)},
        method="post",
        components={"schemas": {"Pet": {"type": "object"}}},
    )
    assert read.request.body is not None
    assert read.request.body.model_dump(exclude_defaults=True) == {
        "type": "json",
        "value": "{arguments.body}",
    }
    assert read.input_schema["required"] == ["body"]
    assert read.input_schema["properties"]["body"] == {"$ref": "#/$defs/Pet"}
    assert read.input_schema["$defs"] == {"Pet": {"type": "object"}}


def test_a_form_body_has_one_field_per_property() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "array"}}}
    form = "application/x-www-form-urlencoded"
    content = {form: {"schema": schema, "encoding": {"b": {"style": "form", "explode": False}}}}
    read = config({"requestBody": {"content": content}}, method="post")
    assert read.request.body is not None
    assert read.request.body.model_dump(exclude_defaults=True) == {
        "type": "form",
        "fields": [
            {"name": "a", "value": "{arguments.body.a}"},
            {"name": "b", "value": "{arguments.body.b}", "explode": False},
        ],
    }


TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("old", "new", "fits", "misfit"),
    [
        ({**TEXT, "nullable": True}, {"type": ["string", "null"]}, None, 1),
        ({"allOf": [TEXT], "nullable": True}, None, None, 1),
        ({"minimum": 0, "exclusiveMinimum": True}, {"exclusiveMinimum": 0}, 0.5, 0),
        ({**TEXT, "example": "x"}, {**TEXT, "examples": ["x"]}, "y", 1),
        ({**TEXT, "pattern": "(?=x)"}, TEXT, "y", 1),
    ],
)
def test_schemas_of_3_0_become_2020_12(old: Any, new: Any, fits: Any, misfit: Any) -> None:
    read = config({"parameters": [parameter("a", "query", old)]}, version="3.0.3")
    schema = read.input_schema["properties"]["a"]
    assert new is None or schema == new
    validator = Validator(schema)
    assert not validator.problems(fits)
    assert validator.problems(misfit)


def test_a_recursive_schema_stays_finite() -> None:
    tree = {"type": "object", "properties": {"children": {"type": "array", "items": {}}}}
    tree["properties"]["children"]["items"] = {"$ref": "#/components/schemas/a~1tree"}
    read = config(
        {"requestBody": body({"$ref": "#/components/schemas/a~1tree"})},
        method="post",
        components={"schemas": {"a/tree": tree}},
    )
    assert check_schema(read.input_schema, role="input") == ()
    (name, defined), *_ = read.input_schema["$defs"].items()
    assert defined["properties"]["children"]["items"] == {"$ref": f"#/$defs/{name}"}
    validator = Validator(read.input_schema)
    assert not validator.problems({"body": {"children": [{"children": []}]}})
    assert validator.problems({"body": {"children": [{"children": 1}]}})


SCHEMES = {
    "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "query": {"type": "apiKey", "in": "query", "name": "k"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "my token": {"type": "http", "scheme": "Bearer"},
    "basic": {"type": "http", "scheme": "basic"},
    "oauth": {"type": "oauth2", "flows": {}},
    "mtls": {"type": "mutualTLS"},
}


@pytest.mark.parametrize(
    ("scheme", "place", "name", "value"),
    [
        ("key", "headers", "X-Key", "{secrets.key}"),
        ("cookie", "headers", "Cookie", "sid={secrets.cookie}"),
        ("my token", "headers", "Authorization", "Bearer {secrets.my_token}"),
    ],
)
def test_security_schemes_become_secrets(scheme: str, place: str, name: str, value: str) -> None:
    found = one({"security": [{scheme: []}]}, components={"securitySchemes": SCHEMES})
    assert found.config is not None
    (written,) = found.config["request"][place]
    assert (written["name"], written["value"]) == (name, value)
    assert [each.scheme for each in found.credentials] == [scheme]


def test_basic_wants_a_user_and_a_password_as_they_are() -> None:
    (credential,) = one({"security": [{"basic": []}]}, **WITH_SCHEMES).credentials
    assert credential.expected == "user:password"


def test_two_schemes_that_write_the_same_header_are_one_credential() -> None:
    schemes = {**SCHEMES, "other": {"type": "oauth2", "flows": {}}}
    found = one({"security": [{"oauth": [], "other": []}]}, components={"securitySchemes": schemes})
    assert found.config is not None, found.problem
    (header,) = found.config["request"]["headers"]
    assert header == {"name": "Authorization", "value": "Bearer {secrets.oauth}"}
    assert [each.scheme for each in found.credentials] == ["oauth"]


def test_a_requirement_of_two_different_values_of_a_header_gives_way_to_the_next() -> None:
    both = {"basic": [], "oauth": []}
    assert "two values of Authorization" in problem({"security": [both]}, **WITH_SCHEMES)
    found = one({"security": [both, {"key": []}]}, **WITH_SCHEMES)
    assert [each.scheme for each in found.credentials] == ["key"]


def taking(name: str, place: str, schema: Any = None, **more: Any) -> dict[str, Any]:
    """Return an operation with one parameter."""
    return {"parameters": [parameter(name, place, schema, **more)]}


def referring(reference: str) -> dict[str, Any]:
    return {"parameters": [{"$ref": reference}]}


POST = {"method": "post"}
SELF = {"components": {"parameters": {"a": {"$ref": "#/components/parameters/a"}}}}
WITH_SCHEMES = {"components": {"securitySchemes": SCHEMES}}
BRACES = {"securitySchemes": {"s": {"type": "apiKey", "in": "cookie", "name": "{a}"}}}


@pytest.mark.parametrize(
    ("operation", "more", "said"),
    [
        ({}, {"servers": [{"url": "/v1"}]}, "The document does not say where the API is"),
        (referring("other.yaml#/x"), {}, "outside the document"),
        (referring("#/components/parameters/a"), SELF, "refers to itself"),
        (
            {"requestBody": body({}, "multipart/form-data")},
            POST,
            "multipart/form-data does not say which fields",
        ),
        (taking("a", "cookie", {"type": "array"}, required=True), {}, "cookie 'a' is a list"),
        ({"requestBody": body({}, "application/json; a b")}, POST, "json; a b is not supported"),
        ({"requestBody": body({}, "text/plain; a b")}, POST, "plain; a b is not supported"),
        (
            {"security": [{"s": []}]},
            {"components": BRACES},
            "is no name of a cookie",
        ),
        ({}, {"path": "/x/{id}"}, "no parameter for {id}"),
        ({"security": [{"mtls": []}]}, WITH_SCHEMES, "mutualTLS"),
        (taking("a", "query", {"enum": ["x" * 70_000]}), {}, "Its input schema cannot be used"),
        ("text", {}, "It is not an object."),
    ],
)
def test_an_unsupported_operation_is_refused_with_the_reason(
    operation: Any, more: dict[str, Any], said: str
) -> None:
    assert said in problem(operation, **more)


def test_documents_may_be_json_or_yaml() -> None:
    made = document({"/a": {"get": {}}})
    written = b"openapi: 3.0.0\ninfo: {version: 2024-01-01}\npaths:\n  /a:\n    get: {responses: {200: {}}}\n"
    assert read(orjson.dumps(made)) == made
    assert read(written)["info"] == {"version": "2024-01-01"}
    assert [
        each.source for each in operations(read(written), ServerAddress("https://a.example.com"))
    ] == ["GET /a"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"[]", "not an object"),
        (b'{"swagger": "1.2"}', "Swagger 2.0: version 1.2 is not supported"),
        (b'{"openapi": "4.0.0", "paths": {}}', "version 4.0.0 is not supported"),
        (b"a: [", "neither JSON nor YAML (line 2)"),
        (b"!!python/object/apply:os.system ['true']", "JSON does not have"),
        (b"a: &a [*a]", "*a refers to itself"),
        (b" " * (16 * 1024 * 1024 + 1), "larger than 16 MiB"),
    ],
)
def test_an_invalid_document_is_refused_with_the_reason(data: bytes, said: str) -> None:
    with pytest.raises(OpenApiError) as caught:
        read(data)
    assert said in str(caught.value)


def test_a_body_with_files_accepts_them_in_base64() -> None:
    texts = {"type": "array", "items": {"type": "string"}}
    properties = {
        "photo": {"type": "string", "format": "binary", "description": "A photo."},
        "pages": {"type": "array", "items": {"$ref": "#/components/schemas/Page"}},
        "pages_file_name": {"type": "string"},
        "about": {"type": "object"},
        "tags": texts,
    }
    schema = {"type": "object", "required": ["photo"], "properties": properties}
    encoding = {"photo": {"contentType": "image/png"}}
    content = {"multipart/form-data": {"schema": schema, "encoding": encoding}}
    page = {"contentMediaType": "application/pdf"}
    found = config(
        {"requestBody": {"content": content}}, method="post", components={"schemas": {"Page": page}}
    )
    assert found.request.body is not None
    sent = found.request.body.model_dump()
    assert sent["type"] == "multipart"
    assert [(each["name"], each["style"]) for each in sent["fields"]] == [
        ("pages_file_name", "form"),
        ("about", "json"),
        ("tags", "form"),
    ]
    photo, pages = (tuple(each.values()) for each in sent["files"])
    assert photo == (
        "photo",
        "{arguments.body.photo}",
        "{arguments.body.photo_file_name}",
        "image/png",
    )
    assert pages == ("pages", "{arguments.body.pages}", "", "application/pdf")
    read = found.input_schema["properties"]["body"]["properties"]
    assert read["photo"]["description"] == "A photo. The content of the file in Base64."
    assert read["photo"]["contentEncoding"] == "base64"
    assert read["pages"]["items"]["contentEncoding"] == "base64"
    assert read["photo_file_name"]["type"] == "string"


def test_members_of_a_path_that_are_not_read_are_named() -> None:
    item = {
        "GET": {},
        "additionalOperations": {},
        "x-own": 1,
        "summary": "a",
        "get": {},
        "trace": {},
    }
    notes = document_notes({"openapi": "3.2.0", "paths": {"/a": item}})
    assert "Not read in paths: GET, additionalOperations." in notes
    assert not any("Not read" in n for n in document_notes({"paths": {"/a": {"get": {}}}}))
