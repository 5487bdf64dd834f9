"""Documents of Swagger 2.0: each construct is sent as it says, or refused or left out with the reason."""

from typing import Any

import orjson
import pytest

from mcphost.kinds.http.openapi import Operation, document_notes, operations
from mcphost.kinds.http.openapi_documents import read
from mcphost.kinds.http.openapi_servers import ServerAddress
from mcphost.kinds.http.openapi_swagger import as_openapi
from tests.kinds.http.test_openapi_wire import Sent

FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
TEXTS = {"type": "array", "items": {"type": "string"}}
LOCATION = "https://docs.example.com/api/swagger.json"
PET = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "id": {"type": "integer", "readOnly": True},
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 0, "exclusiveMinimum": True, "x-nullable": True},
        "parent": {"$ref": "#/definitions/Pet"},
    },
    "discriminator": "name",
}


def imported(operation: Any, path: str = "/a", method: str = "get", **more: Any) -> Operation:
    """Return the operation of a document with a host, a base path and `more`."""
    document = {
        "swagger": "2.0",
        "host": "api.example.com",
        "basePath": "/v1/",
        "schemes": ["http", "https"],
        "paths": {path: {method: operation}},
        **more,
    }
    converted = as_openapi(read(orjson.dumps(document)))
    (found,) = operations(converted, ServerAddress(location=LOCATION))
    return found


def parameter(place: str, **members: Any) -> dict[str, Any]:
    return {"name": "q", "in": place, "required": place == "path", **members}


def posted(*parameters: Any, **more: Any) -> Operation:
    consumes = {"consumes": more.pop("consumes")} if "consumes" in more else {}
    return imported({"parameters": list(parameters), **consumes}, method="post", **more)


def url_of(**document: Any) -> str:
    operation = imported({}, **document)
    assert operation.config is not None, operation.problem
    url: str = operation.config["request"]["url"]
    return url


@pytest.mark.parametrize(
    ("document", "url"),
    [
        ({}, "https://api.example.com/v1/a"),
        ({"schemes": ["ws", "http"]}, "http://api.example.com/v1/a"),
        ({"schemes": []}, "https://api.example.com/v1/a"),
        ({"basePath": "/"}, "https://api.example.com/a"),
        ({"basePath": "v2"}, "https://api.example.com/v2/a"),
        ({"basePath": None}, "https://api.example.com/a"),
        ({"host": "api.example.com:8443"}, "https://api.example.com:8443/v1/a"),
        ({"host": ""}, "https://docs.example.com/v1/a"),
    ],
)
def test_host_base_path_and_schemes_are_the_address(document: dict[str, Any], url: str) -> None:
    assert url_of(**document) == url


def test_an_operation_may_have_schemes_of_its_own() -> None:
    operation = imported({"schemes": ["http"]})
    assert operation.config is not None
    assert operation.config["request"]["url"] == "http://api.example.com/v1/a"
    assert "Give a whole address" in imported({"schemes": ["wss"]}).problem


@pytest.mark.parametrize(
    ("place", "members", "value", "sent"),
    [
        ("query", {"type": "integer"}, 5, "/v1/a?q=5"),
        ("query", TEXTS, ["a", "b,c"], "/v1/a?q=a,b%2Cc"),
        ("query", {**TEXTS, "collectionFormat": "csv"}, ["a", "b"], "/v1/a?q=a,b"),
        ("query", {**TEXTS, "collectionFormat": "multi"}, ["a", "b"], "/v1/a?q=a&q=b"),
        ("query", {**TEXTS, "collectionFormat": "ssv"}, ["a", "b"], "/v1/a?q=a%20b"),
        ("query", {**TEXTS, "collectionFormat": "pipes"}, ["a", "b"], "/v1/a?q=a%7Cb"),
        ("path", {"type": "string"}, "a/b", "/v1/a%2Fb"),
        ("path", TEXTS, ["a", "b"], "/v1/a,b"),
    ],
)
def test_a_parameter_of_the_query_or_the_path_is_written_by_its_collection_format(
    place: str, members: dict[str, Any], value: Any, sent: str
) -> None:
    path = "/{q}" if place == "path" else "/a"
    operation = imported({"parameters": [parameter(place, **members)]}, path)
    assert Sent(operation, {"q": value}).path == sent


def test_a_header_may_be_a_list() -> None:
    operation = imported({"parameters": [parameter("header", **TEXTS)]})
    assert Sent(operation, {"q": ["a", "b"]}).headers["q"] == "a,b"


@pytest.mark.parametrize(
    ("place", "collection", "style"),
    [
        ("query", "tsv", "tsv"),
        ("path", "multi", "form"),
        ("path", "ssv", "spaceDelimited"),
        ("header", "pipes", "pipeDelimited"),
        ("formData", "tsv", "tsv"),
    ],
)
def test_a_collection_format_without_an_equal_is_named(
    place: str, collection: str, style: str
) -> None:
    written = parameter(place, **TEXTS, collectionFormat=collection)
    path, method = ("/{q}", "get") if place == "path" else ("/a", "post")
    other = {"name": "b", "in": "formData", "type": "string"} if place == "formData" else None
    required = {"parameters": [{**written, "required": True}, *filter(None, [other])]}
    assert f"style {style!r}" in imported(required, path, method).problem
    if place != "path":
        optional = imported({"parameters": [written, *filter(None, [other])]}, path, method)
        assert optional.config is not None
        assert f"style {style!r}" in " ".join(optional.notes)


def test_lists_inside_lists_are_refused() -> None:
    nested = {"type": "array", "items": {**TEXTS, "collectionFormat": "pipes"}}
    found = imported({"parameters": [parameter("query", **nested, required=True)]})
    assert found.config is None
    assert "lists or objects inside" in found.problem


def test_the_members_of_a_parameter_become_its_schema() -> None:
    members = {
        "type": "integer",
        "format": "int32",
        "minimum": 1,
        "exclusiveMinimum": True,
        "maximum": 9,
        "default": 2,
        "x-nullable": True,
        "description": "How many.",
    }
    config = imported({"parameters": [parameter("query", **members)]}).config
    assert config is not None
    assert config["input_schema"]["properties"]["q"] == {
        "type": ["integer", "null"],
        "format": "int32",
        "exclusiveMinimum": 1,
        "maximum": 9,
        "default": 2,
        "description": "How many.",
    }


def test_a_body_has_the_media_types_of_consumes_and_its_definitions() -> None:
    body = {"name": "pet", "in": "body", "required": True, "schema": {"$ref": "#/definitions/Pet"}}
    definitions = {"definitions": {"Pet": PET}}
    sent = Sent(posted(body, **definitions), {"body": {"name": "a", "age": None}})
    assert (sent.body, sent.media_type) == ('{"name":"a","age":null}', "application/json")
    schema = posted(body, **definitions).config["input_schema"]  # type: ignore[index]
    assert schema["required"] == ["body"]
    assert set(schema["$defs"]["Pet"]["properties"]) == {"name", "age", "parent"}
    json_api = "application/vnd.api+json"
    for consumes in ([json_api], ["application/xml", json_api]):
        sent = Sent(posted(body, consumes=consumes, **definitions), {"body": {"name": "a"}})
        assert sent.media_type == json_api
    own = imported({"parameters": [body], "consumes": ["text/xml"]}, method="post", **definitions)
    assert "text/xml" in own.problem
    with_global = posted(body, **definitions, consumes=None, produces=["application/json"])
    assert Sent(with_global, {"body": {"name": "a"}}).media_type == "application/json"


def test_form_data_is_a_form() -> None:
    fields = [
        {"name": "a", "in": "formData", "type": "string", "required": True, "description": "An a."},
        {"name": "csv", "in": "formData", **TEXTS},
        {"name": "multi", "in": "formData", **TEXTS, "collectionFormat": "multi"},
        {"name": "pipes", "in": "formData", **TEXTS, "collectionFormat": "pipes"},
    ]
    operation = posted(*fields)
    values = {"a": "x&y", "csv": ["a", "b"], "multi": ["a", "b"], "pipes": ["a", "b"]}
    sent = Sent(operation, {"body": values})
    assert sent.media_type == FORM
    assert sent.body == "a=x%26y&csv=a,b&multi=a&multi=b&pipes=a%7Cb"
    assert operation.config is not None
    body = operation.config["input_schema"]["properties"]["body"]
    assert (body["required"], body["properties"]["a"]["description"]) == (["a"], "An a.")
    assert "body" not in posted(fields[1]).config["input_schema"]["required"]  # type: ignore[index]
    assert Sent(
        posted(fields[0], consumes=[MULTIPART]), {"body": {"a": "x"}}
    ).media_type.startswith(MULTIPART)


@pytest.mark.parametrize("consumes", [[], [FORM], [FORM, MULTIPART], ["application/json"]])
def test_a_file_makes_the_form_multipart(consumes: list[str]) -> None:
    file = {"name": "photo", "in": "formData", "type": "file", "required": True}
    text = {"name": "title", "in": "formData", "type": "string"}
    operation = posted(file, text, consumes=consumes)
    sent = Sent(operation, {"body": {"photo": "aGk=", "title": "t"}})
    assert sent.media_type.startswith(MULTIPART)
    assert 'name="photo"' in sent.body and "\r\nhi\r\n" in sent.body


def test_parameters_are_shared_by_a_document_and_by_a_path() -> None:
    shared = {
        "page": {"name": "page", "in": "query", "type": "integer"},
        "pet": {"name": "pet", "in": "body", "schema": {"type": "object"}},
        "key": {"name": "key", "in": "formData", "type": "string"},
    }
    item = {
        "parameters": [{"$ref": "#/parameters/page"}, {"$ref": "#/parameters/pet"}],
        "post": {},
        "put": {"parameters": [{"name": "pet", "in": "body", "schema": TEXTS}]},
        "get": {"parameters": [{"name": "page", "in": "query", "type": "string"}]},
    }
    document = {
        "swagger": "2.0",
        "host": "api.example.com",
        "parameters": shared,
        "paths": {"/a": item, "/b": {"$ref": "#/paths/~1a", "get": {}}, "/c": {"$ref": "b.json"}},
    }
    found = {o.source: o for o in operations(as_openapi(read(orjson.dumps(document))))}
    sent = Sent(found["POST /a"], {"page": 2, "body": {"x": 1}})
    assert (sent.path, sent.body) == ("/a?page=2", '{"x":1}')
    assert Sent(found["PUT /b"], {"body": ["x"]}).body == '["x"]'
    assert Sent(found["GET /a"], {"page": "x"}).path == "/a?page=x"
    assert "Its body is left out: GET has none." in found["GET /a"].notes
    assert "outside the document" in found["* /c"].problem
    form = imported(
        {"parameters": [{"$ref": "#/parameters/key"}]}, method="post", parameters=shared
    )
    assert Sent(form, {"body": {"key": "x"}}).body == "key=x"
    lost = imported({"parameters": [{"$ref": "#/parameters/none"}]}, parameters=shared)
    assert "refers to nothing" in lost.problem


def test_fields_beside_a_body_are_named() -> None:
    body = {"name": "pet", "in": "body", "schema": {"type": "object"}}
    field = {"name": "a", "in": "formData", "type": "string"}
    found = posted(body, field)
    assert found.notes == (
        "The formData parameter 'a' is left out: the parameter 'a' is in 'formData'.",
    )
    assert "is in 'formData'" in posted(body, {**field, "required": True}).problem


@pytest.mark.parametrize(
    ("scheme", "header"),
    [
        ({"type": "basic"}, ("Authorization", "Basic {secrets.s}")),
        ({"type": "apiKey", "in": "header", "name": "X-Key"}, ("X-Key", "{secrets.s}")),
        *(
            (
                {"type": "oauth2", "flow": flow, "scopes": {"a": "b"}},
                ("Authorization", "Bearer {secrets.s}"),
            )
            for flow in ("implicit", "password", "application", "accessCode")
        ),
    ],
)
def test_security_definitions_are_security_schemes(
    scheme: dict[str, Any], header: tuple[str, str]
) -> None:
    operation = imported({"security": [{"s": []}]}, securityDefinitions={"s": scheme})
    assert operation.config is not None, operation.problem
    (written,) = operation.config["request"]["headers"]
    assert (written["name"], written["value"]) == header
    unknown = imported({"security": [{"s": []}]}, securityDefinitions={"s": {"type": "x"}})
    assert "ecurity of type 'x'" in unknown.problem


def test_the_conversion_is_said_and_other_documents_are_left_as_they_are() -> None:
    document = {"swagger": 2.0, "host": "a.example.com", "schemes": ["http", "https"], "paths": {}}
    notes = document_notes(as_openapi(read(orjson.dumps(document))))
    assert notes[0] == "It is a document of Swagger 2.0, and was converted to OpenAPI 3.0."
    assert "Others: http://a.example.com/." in notes[1]
    other = {"openapi": "3.0.3", "paths": {}}
    assert as_openapi(other) is other
    assert not any("Swagger" in note for note in document_notes(other))


@pytest.mark.parametrize(
    "document",
    [
        {"paths": {"/a": None, "/b": 1, "/c": {"get": None, "post": {"parameters": 5}}}},
        {"paths": {"/a": {"get": {"parameters": [None, 1, {"in": "body"}, {"in": 5}]}}}},
        {"paths": {"/a": {"parameters": {"x": 1}, "post": {"consumes": 1, "schemes": "x"}}}},
        {"paths": {}, "parameters": [1], "securityDefinitions": {"s": 1}, "schemes": 1, "host": 1},
        {"paths": {"/a": {"post": {"parameters": [{"in": "formData"}, {"in": "formData"}]}}}},
        {"paths": {"/a": {"$ref": "#/paths/~1a"}}, "basePath": 7},
    ],
)
def test_a_malformed_document_is_no_fault_of_the_platform(document: dict[str, Any]) -> None:
    converted = as_openapi(read(orjson.dumps({"swagger": "2.0", **document})))
    for operation in operations(converted, ServerAddress(location=LOCATION)):
        assert not operation.fault, operation.fault
