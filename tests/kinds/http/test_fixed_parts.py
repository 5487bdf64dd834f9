"""Arguments neither replace nor repeat the fixed parts of a request, such as a secret."""

from typing import Any

import pytest

from mcphost.egress.messages import FormBody, MultipartBody
from mcphost.kinds.http.configs import RequestConfig
from mcphost.kinds.http.openapi import Operation, operations
from mcphost.kinds.http.requests import RequestTemplate
from mcphost.sdk import ToolError

FIXED = [
    {"name": "api_key", "value": "{secrets.key}"},
    {"name": "role", "value": "viewer"},
    {"name": "limit", "value": "{arguments.limit}"},
    {"name": "filter[owner]", "value": "{arguments.owner}"},
]
FILE = {"name": "photo", "content": "{arguments.photo}"}
MEMBERS = [
    "api_key", "API_KEY", "api.key", " api_key", "api_key[]",
    "api_key[a][b]", "api_key\0x", "role", "filter[owner]",
    "filter", "photo[]",
]  # fmt: skip


def exploded(style: str = "form") -> dict[str, Any]:
    return {"name": "more", "value": "{arguments.more}", "style": style}


def multipart(*fields: Any) -> dict[str, Any]:
    return {"type": "multipart", "fields": list(fields), "files": [FILE]}


def form(*fields: Any) -> dict[str, Any]:
    return {"type": "form", "fields": list(fields)}


REQUESTS: dict[str, dict[str, Any]] = {
    "the query": {"query": [*FIXED, exploded()], "body": multipart()},
    "the query, before the others": {"query": [exploded(), *FIXED], "body": multipart()},
    "a form": {"body": form({"name": "photo", "value": "a"}, *FIXED, exploded())},
    "a form with files": {"body": multipart(exploded(), *FIXED)},
    "a form beside the query": {"query": FIXED, "body": multipart(exploded())},
    "the query beside a form": {"query": [exploded()], "body": multipart(*FIXED)},
}


def filled(members: dict[str, Any], **config: Any) -> Any:
    given = {"url": "https://x.example/", "method": "POST", **config}
    template = RequestTemplate(RequestConfig.model_validate(given))
    return template.fill({"arguments": {"more": members}, "answers": {}}, "key-1")


@pytest.mark.parametrize("place", REQUESTS)
@pytest.mark.parametrize("member", MEMBERS)
def test_an_object_member_that_repeats_a_fixed_field_is_refused(member: str, place: str) -> None:
    with pytest.raises(ToolError, match=r"The request has the field '.*' itself: leave out"):
        filled({"other": 1, member: "mine"}, **REQUESTS[place])


@pytest.mark.parametrize("place", REQUESTS)
def test_object_members_that_repeat_no_fixed_field_are_sent(place: str) -> None:
    members = {"other": 1, "api_key_2": 2, "roles": 3, "more": 4, "key": 5, "api_key": None}
    request = filled(members, **REQUESTS[place])
    content = request.content
    fields = content.fields if isinstance(content, FormBody | MultipartBody) else ()
    expected = [("other", "1"), ("api_key_2", "2"), ("roles", "3"), ("more", "4"), ("key", "5")]
    assert [pair for pair in (*request.query, *fields) if pair in expected] == expected


@pytest.mark.parametrize("member", ["owner", "Owner", "owner]", "owner][", "owner[a]", "owner][a"])
def test_a_deep_object_member_that_repeats_a_fixed_field_is_refused(member: str) -> None:
    field = {"name": "filter", "value": "{arguments.more}", "style": "deepObject"}
    query = [{"name": "filter[owner]", "value": "me"}, field]
    with pytest.raises(ToolError, match=r"leave out|inside a value"):
        filled({member: "you"}, query=query)
    request = filled({"colour": "red"}, query=query)
    assert request.query == (("filter[owner]", "me"), ("filter[colour]", "red"))


@pytest.mark.parametrize(
    "field",
    [
        {**exploded(), "explode": False},
        {**exploded("json")},
        {**exploded(), "value": "x {arguments.more}"},
    ],
)
def test_an_object_sent_as_one_value_may_have_any_members(field: dict[str, Any]) -> None:
    assert filled({"role": "admin"}, query=[*FIXED, field]).query[-1][0] == "more"


SCHEMES = {
    "header": {"type": "apiKey", "in": "header", "name": "X-Key"},
    "query": {"type": "apiKey", "in": "query", "name": "k"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": "sid"},
    "bearer": {"type": "http", "scheme": "bearer"},
}


def imported(path: str, parameters: list[Any], **operation: Any) -> Operation:
    document = {
        "openapi": "3.1.0",
        "servers": [{"url": "https://api.example.com"}],
        "paths": {path: {"get": {"parameters": parameters, **operation}}},
        "components": {"securitySchemes": SCHEMES},
    }
    (found,) = operations(document)
    return found


@pytest.mark.parametrize(
    ("scheme", "place", "name"),
    [
        ("header", "header", "x-key"),
        ("query", "query", "K"),
        ("cookie", "cookie", "sid"),
        ("cookie", "header", "Cookie"),
        ("bearer", "header", "AUTHORIZATION"),
    ],
)
def test_a_parameter_set_by_a_security_scheme_is_not_an_argument(
    scheme: str, place: str, name: str
):
    parameters = [
        {"name": name, "in": place, "required": True, "schema": {"type": "string"}},
        {"name": "other", "in": "query", "schema": {"type": "string"}},
    ]
    operation = imported("/a", parameters, security=[{scheme: []}])
    assert operation.config is not None, operation.problem
    assert list(operation.config["input_schema"]["properties"]) == ["other"]
    request = operation.config["request"]
    values = [field["value"] for field in (*request["query"], *request["headers"])]
    assert len(values) == 2
    assert "{arguments.other}" in values


@pytest.mark.parametrize(
    ("path", "parameters"),
    [
        ("/a?role=viewer", [("Role", "query")]),
        ("/a", [("X-A", "header"), ("x-a", "header")]),
        ("/a", [("sid", "cookie"), ("Cookie", "header")]),
    ],
)
def test_an_operation_with_a_duplicate_field_is_refused(path, parameters):
    listed = [{"name": name, "in": place, "required": True} for name, place in parameters]
    operation = imported(path, listed)
    assert operation.config is None
    assert "twice" in operation.problem
