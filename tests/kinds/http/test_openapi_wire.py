"""Imported operations send exactly the bytes that the document defines, or are refused."""

import re
from typing import Any
from urllib.parse import unquote

import pytest

from mcphost.egress.addresses import Target
from mcphost.egress.messages import build
from mcphost.egress.secret_values import Filler
from mcphost.kinds.functions.program import InvalidArgumentsError
from mcphost.kinds.http.configs import HttpToolConfig
from mcphost.kinds.http.kind import HttpKind
from mcphost.kinds.http.openapi import Operation, operations
from mcphost.kinds.http.requests import RequestTemplate
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.sdk import ToolError
from tests.kinds.http.http_tool_calls import no_search

TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}
NUMBERS = {"type": "object", "properties": {"r": {"type": "integer"}, "g": {"type": "integer"}}}
TREE = {"type": "object", "properties": {"to": {"type": "object", "properties": {"street": TEXT}}}}
ROWS = {"type": "array", "items": {"type": "object", "properties": {"price": TEXT}}}
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"


class Sent:
    """A request as it is sent."""

    def __init__(self, operation: Operation, arguments: dict[str, Any]) -> None:
        assert operation.config is not None, operation.problem
        kind = HttpKind(no_search)
        compiled = kind.compile(operation.config, PrimitiveType.TOOL)
        plain = compiled.program._tool.parameters.bind(arguments)  # type: ignore[attr-defined]
        template = RequestTemplate(HttpToolConfig.model_validate(operation.config).request)
        request = template.fill({**plain, "answers": {}}, "key-1")
        target = Target.parse(request.url)
        filled = build(request, target, Filler({}, target), 1 << 20, compressed=False)
        self.path = filled.target.path
        self.body = filled.body.decode()
        self.headers = {name.decode(): value.decode() for name, value in filled.headers}
        self.media_type = self.headers.get("content-type", "")


def imported(operation: Any, path: str = "/a", method: str = "get", **more: Any) -> Operation:
    document = {
        "openapi": "3.0.3",
        "servers": [{"url": "https://api.example.com"}],
        "paths": {path: {method: operation}},
        **more,
    }
    (found,) = operations(document)
    return found


def with_parameter(name: str, place: str, schema: Any, **more: Any) -> dict[str, Any]:
    return {"parameters": [{"name": name, "in": place, "schema": schema, **more}]}


def with_body(media_type: str, schema: Any, **media: Any) -> dict[str, Any]:
    content = {media_type: {"schema": schema, **media}}
    return {"requestBody": {"required": True, "content": content}}


def query(schema: Any, value: Any, **more: Any) -> str:
    operation = imported(with_parameter("q", "query", schema, **more))
    return Sent(operation, {"q": value}).path.removeprefix("/a")


def posted(operation: dict[str, Any], body: Any, **more: Any) -> Sent:
    return Sent(imported(operation, method="post", **more), {"body": body})


def problem(operation: Any, **more: Any) -> str:
    found = imported(operation, **more)
    assert found.config is None
    return found.problem


@pytest.mark.parametrize(
    ("schema", "more", "value", "expected"),
    [
        (TEXTS, {"explode": False}, ["a,b", "c"], "?q=a%2Cb,c"),
        (TEXTS, {"style": "pipeDelimited"}, ["a b", "c,d"], "?q=a%20b%7Cc%2Cd"),
        (TEXTS, {"style": "spaceDelimited"}, ["a", "b"], "?q=a%20b"),
        (TEXTS, {}, ["a,b", "c"], "?q=a%2Cb&q=c"),
        (NUMBERS, {"explode": False}, {"r": 1, "g": 2}, "?q=r,1,g,2"),
        (NUMBERS, {}, {"r": 1, "g": 2}, "?r=1&g=2"),
        (
            {"type": "object"},
            {"style": "deepObject"},
            {"id": {"$in": [1, {"x": "y"}]}, "n": None},
            "?q%5Bid%5D%5B%24in%5D%5B0%5D=1&q%5Bid%5D%5B%24in%5D%5B1%5D%5Bx%5D=y",
        ),
        (TEXT, {"allowReserved": True}, "a/b:c,d&e=f#g;h i", "?q=a/b:c,d%26e=f%23g%3Bh%20i"),
        (TEXTS, {"allowReserved": True, "explode": False}, ["a/b,c", "d"], "?q=a/b%2Cc,d"),
        (TEXT, {"allowReserved": True}, "a%2Fb%zz%", "?q=a%2Fb%25zz%25"),
        (TEXT, {}, "a/b:c", "?q=a%2Fb%3Ac"),
        (TEXT, {}, "a%2Fb", "?q=a%252Fb"),
    ],
)
def test_a_query_value_is_written_by_its_style(
    schema: Any, more: dict[str, Any], value: Any, expected: str
) -> None:
    assert query(schema, value, **more) == expected


@pytest.mark.parametrize(
    ("place", "style", "explode", "value", "mark"),
    [
        ("query", "pipeDelimited", False, ["a|b", "c"], "|"),
        ("query", "pipeDelimited", False, {"a": "b|c"}, "|"),
        ("query", "spaceDelimited", False, ["a b", "c"], " "),
        ("query", "deepObject", True, {"a[b": "c"}, "["),
        ("query", "deepObject", True, {"a": {"]": "c"}}, "]"),
        ("header", "simple", False, ["a,b", "c"], ","),
        ("header", "simple", False, {"a": "b,c"}, ","),
        ("header", "simple", False, {"a,b": "c"}, ","),
        ("header", "simple", True, {"a=b": "c"}, "="),
        ("header", "simple", True, {"a": "b,c"}, ","),
        ("path", "label", True, ["a.b", "c"], "."),
        ("path", "label", True, {"r": 1.5}, "."),
    ],
)
def test_a_value_with_the_character_that_ends_it_is_refused_where_nothing_escapes_it(
    place: str, style: str, explode: bool, value: Any, mark: str
) -> None:
    operation = with_parameter("q", place, {}, style=style, explode=explode, required=True)
    path = "/a/{q}" if place == "path" else "/a"
    with pytest.raises(ToolError, match=f"'q.*' has '{re.escape(mark)}' inside a value"):
        Sent(imported(operation, path=path), {"q": value})


def test_a_text_with_a_comma_is_one_value_of_a_header_and_with_a_point_one_of_a_label() -> None:
    assert Sent(imported(with_parameter("q", "header", TEXT)), {"q": "a,b"}).headers["q"] == "a,b"
    exploded = with_parameter("q", "header", NUMBERS, explode=True)
    assert Sent(imported(exploded), {"q": {"r": 1, "x": "1=1"}}).headers["q"] == "r=1,x=1=1"
    label = with_parameter("q", "path", TEXT, style="label", required=True)
    assert Sent(imported(label, path="/{q}"), {"q": "a.b"}).path == "/.a.b"


@pytest.mark.parametrize(
    ("version", "style", "value", "expected"),
    [
        ("3.2.0", {}, "a:b@c/d?e#f", "/a:b@c%2Fd%3Fe%23f"),
        ("3.2.0", {}, ["a,b", "c:d"], "/a%2Cb,c:d"),
        ("3.2.0", {}, "a%2Fb%", "/a%2Fb%25"),
        ("3.2.0", {"style": "matrix"}, "a;x=b", "/;q=a%3Bx%3Db"),
        ("3.1.1", {}, "a:b", "/a%3Ab"),
        ("3.0.4", {}, "a:b", "/a%3Ab"),
    ],
)
def test_reserved_characters_stay_in_a_path_since_3_2(
    version: str, style: Any, value: Any, expected: str
) -> None:
    operation = with_parameter("q", "path", {}, required=True, allowReserved=True, **style)
    found = imported(operation, path="/{q}", openapi=version)
    assert Sent(found, {"q": value}).path == expected
    note = "`allowReserved` of the path parameter 'q' has no effect there."
    assert (note in found.notes) is (version != "3.2.0")


SECRET = "{secrets.stripe}"
"""A text of a document that must never be read as a placeholder."""
NAMES = (f'a"}}{SECRET}', SECRET, f"a{SECRET}", 'a"b', "a{arguments.b}", "a; admin")


def test_names_in_a_document_are_never_read_as_placeholders():
    for name in NAMES:
        for place in ("query", "header", "cookie"):
            operation = imported(with_parameter(name, place, TEXT))
            assert operation.config is not None
            request = operation.config["request"]
            assert SECRET not in "".join(field["value"] for field in request["query"])
            assert not request["headers"], (name, place)
        for media_type in (FORM, MULTIPART):
            for schema in (TEXT, {"type": "string", "format": "binary"}):
                properties = {name: schema, "b": TEXT, "a": TEXT}
                form = {"type": "object", "properties": properties}
                if name == "a; admin":  # a field may have such a name
                    continue
                sent = posted(with_body(media_type, form), {"a": "x", "b": "y"})
                assert "stripe" not in sent.body, (name, media_type)
                assert (
                    "is left out" in imported(with_body(media_type, form), method="post").notes[0]
                )
        scheme = {"type": "apiKey", "in": "cookie", "name": name}
        more = {"security": [{"k": []}], "components": {"securitySchemes": {"k": scheme}}}
        assert "is no name of a cookie" in problem({}, **more)
    for encoding in (f"text/{SECRET}", SECRET, "text"):
        for schema in (TEXT, {"type": "string", "format": "binary"}):
            form = {"type": "object", "properties": {"f": schema}, "required": ["f"]}
            operation = with_body(MULTIPART, form, encoding={"f": {"contentType": encoding}})
            assert "is no media type" in problem(operation, method="post")
    for url in (
        f"https://api.example.com/{SECRET}",
        "https://{arguments.q}.example.com",
        "https://a/{v",
    ):
        assert "its server" in problem(with_parameter("q", "query", TEXT), servers=[{"url": url}])
    variable = {"v": {"default": "{arguments.q}"}}
    servers = [{"url": "https://api.example.com/{v}", "variables": variable}]
    assert "has a brace" in problem({}, servers=servers)


def test_a_server_variable_may_be_empty_but_not_without_default():
    url = "https://api.example.com{v}"
    servers = [{"url": url, "variables": {"v": {"default": ""}}}]
    assert Sent(imported({}, servers=servers), {}).path == "/a"
    servers = [{"url": url, "variables": {"v": {"enum": ["a"]}}}]
    assert problem({}, servers=servers) == "The variable 'v' of its server has no default."


def test_a_path_parameter_that_the_path_does_not_have_is_left_out_with_a_note():
    for style in ("simple", "matrix"):
        operation = imported(with_parameter("id", "path", TEXT, required=True, style=style))
        assert operation.config is not None
        assert operation.config["input_schema"]["properties"] == {}
        assert operation.notes == (
            "The path parameter 'id' is left out: the path does not have it.",
        )


def test_null_in_a_list_is_left_out_in_every_place():
    schema = {"type": "array", "items": {"type": "string", "nullable": True}}
    value = ["a", None, "b"]
    assert query(schema, value) == "?q=a&q=b"
    assert query(schema, value, explode=False) == "?q=a,b"
    path = imported(with_parameter("q", "path", schema, required=True), "/{q}")
    assert Sent(path, {"q": value}).path == "/a,b"
    header = imported(with_parameter("X-Q", "header", schema))
    assert Sent(header, {"X-Q": value}).headers["x-q"] == "a,b"
    for form in (
        {"type": "object", "properties": {"q": schema}},
        {"type": "object", "additionalProperties": schema},
    ):
        assert posted(with_body(FORM, form), {"q": value}).body == "q=a&q=b"


def test_null_as_the_body_is_sent_and_a_missing_body_is_not():
    schema = {"type": "object", "nullable": True}
    sent = posted(with_body("application/json", schema), None)
    assert (sent.body, sent.media_type) == ("null", "application/json")
    for media_type in ("application/json", FORM, MULTIPART):
        form = {"type": "object", "properties": {"a": TEXT}}
        optional = {"requestBody": {"content": {media_type: {"schema": form}}}}
        sent = Sent(imported(optional, method="post"), {})
        assert (sent.body, sent.media_type) == ("", ""), media_type
    assert posted(with_body(FORM, form), {}).media_type == FORM


@pytest.mark.parametrize(
    ("version", "schema", "encoding", "media_type"),
    [
        ("3.1.0", {}, {}, "application/octet-stream"),
        ("3.0.3", {}, {"contentType": "application/octet-stream"}, "application/octet-stream"),
        ("3.0.3", TEXT, {"contentType": "image/png"}, "image/png"),
        ("3.1.0", {"contentMediaType": "image/png"}, {}, "image/png"),
        ("3.0.3", {"type": "string", "format": "byte"}, {"contentType": "image/png"}, ""),
        ("3.1.0", {"type": "string", "contentEncoding": "base64"}, {}, ""),
        ("3.0.3", TEXT, {"contentType": "image/svg+xml"}, ""),
        ("3.0.3", {}, {}, ""),
    ],
)
def test_a_part_that_is_no_text_is_a_file(
    version: str, schema: Any, encoding: dict[str, str], media_type: str
):
    form = {"type": "object", "properties": {"f": schema}}
    operation = with_body(MULTIPART, form, encoding={"f": encoding})
    sent = posted(operation, {"f": "QQ=="}, openapi=version)
    assert ('filename="f"' in sent.body) is bool(media_type)
    assert ("\r\n\r\nA\r\n" if media_type else "\r\n\r\nQQ==\r\n") in sent.body
    assert f"Content-Type: {media_type}" in sent.body or not media_type


@pytest.mark.parametrize(
    ("content_type", "choices"),
    [("image/png, image/jpeg", ["image/png", "image/jpeg"]), ("image/*", None)],
)
def test_the_media_type_of_a_file_is_an_argument_if_there_are_several(
    content_type: str, choices: list[str] | None
):
    form = {"type": "object", "properties": {"f": {"type": "string", "format": "binary"}}}
    operation = with_body(MULTIPART, form, encoding={"f": {"contentType": content_type}})
    found = imported(operation, method="post")
    assert found.config is not None
    properties = found.config["input_schema"]["properties"]["body"]["properties"]
    assert properties["f_content_type"].get("enum") == choices
    sent = posted(operation, {"f": "QQ==", "f_content_type": "image/png"})
    assert "Content-Type: image/png\r\n" in sent.body


def test_a_part_of_a_form_that_cannot_be_written_as_the_document_says_is_refused():
    numbers = {"type": "object", "properties": {"o": NUMBERS}, "required": ["o"]}
    for media_type in (FORM, MULTIPART):
        encoding = {"o": {"contentType": "application/xml"}}
        assert "cannot be written as application/xml" in problem(
            with_body(media_type, numbers, encoding=encoding), method="post"
        )
    text = {"type": "object", "properties": {"o": TEXT}}
    for required in (True, False):
        header = {"X-Part": {"required": required, "schema": TEXT}, "Content-Type": {}}
        found = imported(
            with_body(MULTIPART, text, encoding={"o": {"headers": header}}), method="post"
        )
        assert ("needs the header 'X-Part'" in found.problem) is required
        assert found.notes == (
            () if required else ("The header 'X-Part' of the part 'o' is left out.",)
        )
    files = {"type": "object", "additionalProperties": {"type": "string", "format": "binary"}}
    assert "can be written" in problem(with_body(MULTIPART, files), method="post")


@pytest.mark.parametrize("schema", [ROWS, TREE, {"allOf": [{"anyOf": [TEXT, ROWS]}]}])
def test_a_nested_value_is_refused_where_its_style_does_not_define_it(schema: Any) -> None:
    for place, path in (("query", "/a"), ("path", "/{q}"), ("header", "/a")):
        required = with_parameter("q", place, schema, required=True)
        assert "does not define" in problem(required, path=path)
    found = imported(with_parameter("q", "query", schema))
    assert found.config is not None
    assert found.config["input_schema"]["properties"] == {}
    assert "'q' is left out" in found.notes[0]
    assert "does not define" in problem(
        with_body(FORM, {"type": "object", "properties": {"q": schema}, "required": ["q"]}),
        method="post",
    )


def test_a_nested_value_without_a_schema_is_not_sent_as_json() -> None:
    for schema, value in ((TEXTS | {"items": {}}, [["a"]]), ({}, {"a": {"b": 1}})):
        with pytest.raises(ToolError, match="inside a list or an object"):
            query(schema, value)


@pytest.mark.parametrize(
    ("style", "explode", "value", "expected"),
    [
        ("simple", False, {"r": 100, "g": 200}, "/r,100,g,200"),
        ("simple", True, {"r": 100, "g": 200}, "/r=100,g=200"),
        ("simple", False, ["a,b", "c/"], "/a%2Cb,c%2F"),
        ("label", True, ["a", "b"], "/.a.b"),
        ("label", False, ["a", "b"], "/.a,b"),
        ("label", True, {"r": 1, "g": 2}, "/.r=1.g=2"),
        ("label", False, "x", "/.x"),
        ("matrix", False, ["a", "b"], "/;x=a,b"),
        ("matrix", True, ["a", "b"], "/;x=a;x=b"),
        ("matrix", False, {"r": 1}, "/;x=r,1"),
        ("matrix", True, {"r": 1, "g": 2}, "/;r=1;g=2"),
        ("matrix", True, "a;b", "/;x=a%3Bb"),
    ],
)
def test_a_path_value_is_written_by_its_style(
    style: str, explode: bool, value: Any, expected: str
) -> None:
    operation = with_parameter("x", "path", {}, style=style, explode=explode, required=True)
    assert Sent(imported(operation, path="/{x}"), {"x": value}).path == expected
    for bad in ("..", ["a", ".."], {"a": "."}, {}, []):
        with pytest.raises(ToolError, match="must not be empty"):
            Sent(imported(operation, path="/{x}"), {"x": bad})


@pytest.mark.parametrize(
    "schema", [TEXTS, {"oneOf": [TEXT, TEXTS]}, {"$ref": "#/components/schemas/Tags"}, {}]
)
def test_a_list_in_a_header_is_comma_separated_however_its_schema_is_written(schema: Any) -> None:
    operation = imported(
        with_parameter("X-Tags", "header", schema), components={"schemas": {"Tags": TEXTS}}
    )
    assert Sent(operation, {"X-Tags": ["a", "b"]}).headers["x-tags"] == "a,b"
    assert "x-tags" not in Sent(operation, {}).headers


@pytest.mark.parametrize(("explode", "expected"), [(False, "r,1,g,2"), (True, "r=1,g=2")])
def test_an_object_in_a_header_is_written_by_its_style(explode: bool, expected: str) -> None:
    operation = imported(with_parameter("X-A", "header", NUMBERS, explode=explode))
    assert Sent(operation, {"X-A": {"r": 1, "g": 2}}).headers["x-a"] == expected


def test_parameters_with_json_content_are_json_in_every_place() -> None:
    for place, path in (("query", "/a"), ("path", "/{q}"), ("header", "/a"), ("cookie", "/a")):
        content = {"application/json": {"schema": {"type": "object"}}}
        parameter = {"name": "q", "in": place, "required": True, "content": content}
        sent = Sent(imported({"parameters": [parameter]}, path=path), {"q": {"a": [1]}})
        assert {
            "query": sent.path == "/a?q=%7B%22a%22%3A%5B1%5D%7D",
            "path": sent.path == "/%7B%22a%22%3A%5B1%5D%7D",
            "header": sent.headers.get("q") == '{"a":[1]}',
            "cookie": sent.headers.get("cookie") == "q={%22a%22:[1]}",
        }[place], place


def test_optional_cookies_are_sent_only_if_present() -> None:
    cookies = [{"name": name, "in": "cookie", "schema": TEXT} for name in ("sid", "lang")]
    operation = imported({"parameters": cookies})
    assert Sent(operation, {"sid": "1", "lang": "en"}).headers["cookie"] == "sid=1; lang=en"
    assert Sent(operation, {"lang": "en"}).headers["cookie"] == "lang=en"
    assert "cookie" not in Sent(operation, {}).headers
    for schema in (TEXTS, {"allOf": [TEXTS]}, {"anyOf": [TEXT, NUMBERS]}):
        assert "list or an object" in problem(with_parameter("a", "cookie", schema, required=True))


@pytest.mark.parametrize(
    ("media_types", "sent"),
    [
        (["application/json-patch+json"], "application/json-patch+json"),
        (["application/vnd.api+json; ext=bulk"], "application/vnd.api+json; ext=bulk"),
        (["application/merge-patch+json", "application/json"], "application/json"),
        (["text/plain", "application/json"], "application/json"),
        (["application/xml", FORM, "application/hal+json"], "application/hal+json"),
        (["text/plain", FORM], FORM),
        (["*/*"], "application/json"),
        (["application/octet-stream", "application/*"], "application/json"),
    ],
)
def test_the_media_type_does_not_depend_on_the_order_in_the_document(
    media_types: list[str], sent: str
):
    schema = {"type": "object", "properties": {"a": TEXT}}
    content = {name: {"schema": schema} for name in media_types}
    operation = {"requestBody": {"required": True, "content": content}}
    request = posted(operation, {"a": "x"})
    assert request.media_type == sent
    assert request.body == ("a=x" if sent == FORM else '{"a":"x"}')


@pytest.mark.parametrize(
    "media_type", ["application/xml", "text/xml", "application/yaml", "text/csv"]
)
def test_an_object_body_of_an_unsupported_media_type_is_refused(media_type: str) -> None:
    for schema in (NUMBERS, ROWS, {"allOf": [NUMBERS]}):
        assert media_type in problem(with_body(media_type, schema), method="post")
    for schema in (TEXT, {}):
        sent = posted(with_body(media_type, schema), "<a/>")
        assert (sent.media_type, sent.body) == (media_type, "<a/>")
        with pytest.raises(InvalidArgumentsError):
            posted(with_body(media_type, schema), {"a": 1})


def test_text_in_another_charset_than_utf_8_is_refused() -> None:
    assert "latin1" in problem(with_body("text/plain; charset=latin1", TEXT), method="post")
    assert posted(with_body("text/plain; charset=UTF-8", TEXT), "ä").body == "ä"


@pytest.mark.parametrize(
    ("media_type", "schema", "sent"),
    [
        ("application/octet-stream", {"type": "string", "format": "binary"}, None),
        ("image/png", {}, None),
        ("application/zip", True, None),
        ("*/*", {"type": "string", "format": "binary"}, "application/octet-stream"),
    ],
)
def test_a_body_of_bytes_is_base64(media_type: str, schema: Any, sent: str | None) -> None:
    request = posted(with_body(media_type, schema), "YWJj")
    assert (request.body, request.media_type) == ("abc", sent or media_type)
    with pytest.raises(ToolError, match="Base64"):
        posted(with_body(media_type, schema), "a b?")


@pytest.mark.parametrize(
    "schema", [{"format": "byte"}, {"format": "base64"}, {"contentEncoding": "base64"}]
)
def test_a_body_that_is_base64_in_the_document_is_sent_as_it_is(schema: Any) -> None:
    request = posted(with_body("image/png", {"type": "string", **schema}), "YWJj")
    assert (request.body, request.media_type) == ("YWJj", "image/png")


@pytest.mark.parametrize("value", [[], {}, [None], {"a": None}])
def test_a_list_or_object_without_values_is_not_sent(value: Any) -> None:
    for explode in (True, False):
        assert query({}, value, explode=explode) == ""
        operation = imported(with_parameter("X-A", "header", {}, explode=explode))
        assert "x-a" not in Sent(operation, {"X-A": value}).headers


PROPERTIES = {"type": "object", "properties": {"a": TEXT}}
COMPOSED = [
    {"allOf": [PROPERTIES]},
    {"oneOf": [PROPERTIES, {"type": "object", "properties": {"b": TEXT}}]},
    {"anyOf": [{"type": "null"}, {"allOf": [{"$ref": "#/components/schemas/A"}]}]},
    {"$ref": "#/components/schemas/B"},
    {"properties": {"b": TEXT}, "allOf": [{"$ref": "#/components/schemas/A"}]},
]
SCHEMAS = {"components": {"schemas": {"A": PROPERTIES, "B": {"allOf": [PROPERTIES]}}}}


@pytest.mark.parametrize("schema", COMPOSED)
def test_a_form_has_the_fields_of_all_parts_of_a_composed_schema(schema: Any) -> None:
    assert posted(with_body(FORM, schema), {"a": "1"}, **SCHEMAS).body == "a=1"
    sent = posted(with_body(MULTIPART, schema), {"a": "1"}, **SCHEMAS).body
    assert 'name="a"\r\n\r\n1\r\n' in sent
    with pytest.raises(InvalidArgumentsError):
        posted(with_body(FORM, schema), {"a": "1", "zz": "2"}, **SCHEMAS)


def test_files_are_recognized_in_composed_schemas() -> None:
    file = {"type": "string", "format": "binary"}
    for schema in (
        {"allOf": [{"type": "object", "properties": {"f": file}}]},
        {"type": "object", "properties": {"f": {"anyOf": [file, {"type": "null"}]}}},
        {"type": "object", "properties": {"f": {"$ref": "#/components/schemas/F"}}},
    ):
        more = {"components": {"schemas": {"F": file}}}
        sent = posted(with_body(MULTIPART, schema), {"f": "YWJj"}, **more).body
        assert 'name="f"; filename="f"\r\nContent-Type: application/octet-stream\r\n\r\nabc' in sent


@pytest.mark.parametrize("further", [TEXT, True, {"type": "array", "items": TEXT}])
def test_additional_fields_of_a_form_are_sent(further: Any) -> None:
    schema = {**PROPERTIES, "additionalProperties": further}
    value: Any = ["2", "3"] if further != TEXT else "2"
    sent = posted(with_body(FORM, schema), {"a": "1", "zz": value}).body
    assert sent == ("a=1&zz=2" if further == TEXT else "a=1&zz=2&zz=3")


def test_an_object_without_declared_properties_sends_all_members() -> None:
    assert posted(with_body(FORM, {"type": "object"}), {"x": 1, "y": "b c"}).body == "x=1&y=b+c"
    with pytest.raises(ToolError, match="inside"):
        posted(with_body(FORM, {"type": "object"}), {"x": {"a": 1}})


def test_nested_fields_are_written_in_brackets_for_deep_object_style() -> None:
    properties = {"items": ROWS, "tags": TEXTS, "ship": TREE}
    deep = {name: {"style": "deepObject", "explode": True} for name in properties}
    operation = with_body(FORM, {"type": "object", "properties": properties}, encoding=deep)
    value = {"items": [{"price": "x"}], "tags": ["a", "b"], "ship": {"to": {"street": "s"}}}
    fields = [
        *("items%5B0%5D%5Bprice%5D=x", "tags%5B0%5D=a", "tags%5B1%5D=b"),
        "ship%5Bto%5D%5Bstreet%5D=s",
    ]
    assert posted(operation, value).body.split("&") == fields


def test_a_field_with_json_content_type_is_written_as_json() -> None:
    encoding = {"ship": {"contentType": "application/json"}}
    schema = {"type": "object", "properties": {"ship": TREE}}
    sent = posted(with_body(FORM, schema, encoding=encoding), {"ship": {"to": {"street": "s"}}})
    assert sent.body == "ship=%7B%22to%22%3A%7B%22street%22%3A%22s%22%7D%7D"


def test_multipart_parts_have_their_content_types() -> None:
    properties = {"meta": NUMBERS, "rows": TEXT, "list": ROWS, "plain": TEXT}
    encoding = {"rows": {"contentType": "text/csv"}}
    operation = with_body(
        MULTIPART, {"type": "object", "properties": properties}, encoding=encoding
    )
    value = {"meta": {"r": 1}, "rows": "a,b", "list": [{"price": "1"}], "plain": "x"}
    parts = posted(operation, value).body
    assert 'name="meta"\r\nContent-Type: application/json\r\n\r\n{"r":1}\r\n' in parts
    assert 'name="rows"\r\nContent-Type: text/csv\r\n\r\na,b\r\n' in parts
    assert 'name="list"\r\nContent-Type: application/json\r\n\r\n{"price":"1"}\r\n' in parts
    assert 'name="plain"\r\n\r\nx\r\n' in parts


JSON_PART = "\r\nContent-Type: application/json\r\n\r\n"


@pytest.mark.parametrize(
    ("schema", "types", "value", "expected"),
    [
        (TEXT, "application/json", "x", f'name="p"{JSON_PART}"x"\r\n'),
        (TEXT, "application/json, text/plain", "x", "Content-Type: text/plain\r\n\r\nx\r\n"),
        (TEXTS, "application/json", ["x", "y"], f'name="p"{JSON_PART}"y"\r\n'),
        (ROWS, "", [{"price": "1"}, {}], f'name="p"{JSON_PART}{{}}\r\n'),
        (
            ROWS,
            "application/vnd.x+json",
            [{}],
            "Content-Type: application/vnd.x+json\r\n\r\n{}\r\n",
        ),
        ({"type": "integer"}, "application/json", 5, f'name="p"{JSON_PART}5\r\n'),
        ({}, "", {"a": 1}, f'name="p"{JSON_PART}{{"a":1}}\r\n'),
        ({}, "", [{"a": 1}, "x"], f'name="p"{JSON_PART}"x"\r\n'),
        ({}, "", [[1], [2]], f'name="p"{JSON_PART}[2]\r\n'),
        ({}, "", "x", 'name="p"\r\n\r\nx\r\n'),
        ({}, "", ["x"], 'name="p"\r\n\r\nx\r\n'),
        ({"description": "Anything."}, "", True, 'name="p"\r\n\r\ntrue\r\n'),
        ({"oneOf": [TEXT, TREE]}, "", "x", 'name="p"\r\n\r\nx\r\n'),
        ({"oneOf": [TEXT, TREE]}, "", {"to": {}}, f'name="p"{JSON_PART}{{"to":{{}}}}\r\n'),
        ({"nullable": True, **TREE}, "", {"to": {}}, f'name="p"{JSON_PART}{{"to":{{}}}}\r\n'),
    ],
)
def test_a_part_has_the_media_type_of_its_value(
    schema: Any, types: str, value: Any, expected: str
) -> None:
    encoding = {"p": {"contentType": types}} if types else {}
    whole = {"type": "object", "properties": {"p": schema}}
    assert expected in posted(with_body(MULTIPART, whole, encoding=encoding), {"p": value}).body


OUTSIDE = {"$ref": "other.yml"}
NOWHERE = {"$ref": "#/components/nothing"}


@pytest.mark.parametrize("reference", [OUTSIDE, NOWHERE])
@pytest.mark.parametrize(
    "operation",
    [
        lambda ref: ref,
        lambda ref: {"parameters": [ref]},
        lambda ref: {"parameters": ref},
        lambda ref: {"requestBody": ref},
        lambda ref: {"requestBody": {"content": ref}},
        lambda ref: {"requestBody": {"content": {"application/json": ref}}},
        lambda ref: with_body("application/json", ref),
        lambda ref: with_body(FORM, ref),
        lambda ref: with_body(FORM, PROPERTIES, encoding=ref),
        lambda ref: with_body(FORM, PROPERTIES, encoding={"a": ref}),
        lambda ref: with_body(FORM, {"allOf": [ref]}),
        lambda ref: {"servers": ref},
        lambda ref: {"servers": [ref]},
        lambda ref: with_parameter("a", "query", ref, required=True),
    ],
)
def test_an_unresolvable_reference_is_reported_and_not_read_as_an_empty_object(
    operation: Any, reference: Any
) -> None:
    assert "refers to " in problem(operation(reference), method="post")


def test_an_unreadable_path_is_listed_with_the_reason() -> None:
    document = {
        "openapi": "3.0.3",
        "servers": [{"url": "https://api.example.com"}],
        "paths": {"/a": OUTSIDE, "/b": {"$ref": "#/paths/~1c", "get": {}}, "/c": {"put": {}}},
    }
    found = {each.source: each.problem for each in operations(document)}
    assert list(found) == ["* /a", "GET /b", "PUT /b", "PUT /c"]
    assert "'other.yml' refers to something outside the document" in found["* /a"]
    assert not any(found[source] for source in list(found)[1:])


def test_argument_names_fit_every_client_and_are_sent_under_the_documents_names() -> None:
    wires = [
        "$top",
        "StartTime<",
        "StartTime",
        "StartTime>",
        "ip address",
        "from:date",
        "from_date",
    ]
    wires += ["$.xgafv", "filter[id]", "é", "body", "x" * 70, "a.b-c", "<>", "1"]
    parameters = [{"name": name, "in": "query", "schema": TEXT} for name in wires]
    operation = imported({"parameters": parameters})
    assert operation.config is not None
    properties = operation.config["input_schema"]["properties"]
    assert list(properties) == [
        *("top", "StartTime_2", "StartTime", "StartTime_3", "ip_address", "from_date_2"),
        *("from_date", "xgafv", "filter_id", "argument", "query_body", "x" * 64, "a.b-c"),
        *("argument_2", "1"),
    ]
    assert properties["top"]["description"] == "Sent as `$top`."
    sent = Sent(operation, {name: str(number) for number, name in enumerate(properties)})
    request = RequestTemplate(HttpToolConfig.model_validate(operation.config).request)
    values = {name: str(number) for number, name in enumerate(properties)}
    pairs = request.fill({"arguments": values, "answers": {}}, "").query
    assert list(pairs) == [(wire, str(number)) for number, wire in enumerate(wires)]
    assert "%24top=0" in sent.path


@pytest.mark.parametrize("media_type", [FORM, MULTIPART])
@pytest.mark.parametrize("format", [{}, {"format": "binary"}])
@pytest.mark.parametrize("name", ["file {}", 'a"b', "{a}", ""])
def test_a_field_whose_name_no_placeholder_can_have_is_left_out_or_refused(
    name: str, format: dict[str, str], media_type: str
) -> None:
    schema = {"type": "object", "properties": {name: {**TEXT, **format}, "b": TEXT}}
    found = imported(with_body(media_type, schema), method="post")
    assert found.config is not None, found.problem
    assert found.notes[0].startswith(f"The field {name!r} is left out: the name")
    assert list(found.config["input_schema"]["properties"]["body"]["properties"]) == ["b"]
    assert "b" in Sent(found, {"body": {"b": "x"}}).body
    required = imported(with_body(media_type, {**schema, "required": [name]}), method="post")
    assert required.config is None
    assert required.problem.startswith(f"The name {name!r} is empty, or has a brace")


def test_headers_that_the_platform_sets_are_left_out_with_a_note() -> None:
    for name in ("Idempotency-Key", "accept-encoding", "Content-Length", "Host"):
        found = imported(with_parameter(name, "header", TEXT, required=True), method="post")
        assert found.config is not None
        assert found.config["input_schema"]["properties"] == {}
        assert name in found.notes[0]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/files/{id}#get", "/files/7"),
        ("/files?id={id}", "/files?id=7"),
        ("/files?what=file-{id}&x=1#y", "/files?what=file-7&x=1"),
    ],
)
def test_placeholders_in_a_path_with_a_query_or_fragment_are_filled(
    path: str, expected: str
) -> None:
    place = "path" if "{id}" in path.partition("?")[0] else "query"
    operation = with_parameter("id", place, TEXT, required=True)
    assert Sent(imported(operation, path=path), {"id": "7"}).path == expected


def test_refusals_do_not_mention_internal_names() -> None:
    refusals = [
        problem({}, servers=[{"url": "https://user@api.example.com"}]),
        problem(
            with_body(FORM, {"type": "object", "properties": {}, "additionalProperties": False}),
            method="post",
        ),
        problem(
            {"security": [{"s": []}]},
            components={
                "securitySchemes": {"s": {"type": "apiKey", "in": "header", "name": "a b"}}
            },
        ),
    ]
    for refusal in refusals:
        assert "request." not in refusal
        assert "List should" not in refusal


INTEGER = {"type": "integer"}
INTEGERS = [
    INTEGER,
    {"type": ["integer", "null"]},
    {"$ref": "#/components/schemas/Count"},
    {"anyOf": [{"type": "string"}, {"allOf": [INTEGER]}]},
]
COUNTS = {"components": {"schemas": {"Count": INTEGER}}}


@pytest.mark.parametrize("schema", INTEGERS)
def test_a_whole_number_is_written_as_an_integer_if_the_schema_requires_integers(
    schema: Any,
) -> None:
    places = ("path", "query", "header")
    parameters = [
        {"name": place, "in": place, "required": True, "schema": schema} for place in places
    ]
    operation = imported({"parameters": parameters}, path="/{path}", **COUNTS)
    sent = Sent(operation, dict.fromkeys(places, 5.0))
    assert (sent.path, sent.headers["header"]) == ("/5?query=5", "5")
    inner = {"type": "object", "properties": {"n": schema}, "additionalProperties": schema}
    nested = {"type": "object", "properties": {"rows": {"type": "array", "items": inner}}}
    value = {"rows": [{"n": 5.0, "m": -0.0, "x": 1}]}
    sent = posted(with_body("application/json", nested), value, **COUNTS)
    assert sent.body == '{"rows":[{"n":5,"m":0,"x":1}]}'
    if schema != INTEGERS[3]:
        with pytest.raises(InvalidArgumentsError):
            Sent(operation, {**dict.fromkeys(places, 5.0), "query": 0.5})


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (1e16, "10000000000000000"),
        (1e19, "10000000000000000000"),
        (2**64 - 1, "18446744073709551615"),
        (-(2**63), "-9223372036854775808"),
        (1e23, "1e+23"),
    ],
)
def test_a_large_integer_is_written_with_its_digits_up_to_64_bits(value: float, sent: str) -> None:
    assert posted(with_body("application/json", INTEGER), value).body == sent
    parameter = {"name": "n", "in": "query", "schema": INTEGER}
    query = Sent(imported({"parameters": [parameter]}), {"n": value}).path.partition("?n=")[2]
    assert unquote(query) == sent


@pytest.mark.parametrize(
    "schema", [{"type": "number"}, {}, {"anyOf": [INTEGER, {"type": "number"}]}]
)
def test_other_numbers_are_sent_unchanged(schema: Any) -> None:
    assert posted(with_body("application/json", schema), 5.0).body == "5.0"
    assert float(posted(with_body("application/json", schema), 1e300).body) == 1e300
