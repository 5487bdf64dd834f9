"""The HTTP request that is built from the values of a call."""

from typing import Any
from urllib.parse import urlsplit

import pytest

from mcphost.egress.messages import FormBody, JsonBody, OutgoingRequest
from mcphost.egress.secret_values import SecretHandle, Template
from mcphost.kinds.http.configs import RequestConfig
from mcphost.kinds.http.requests import RequestTemplate
from mcphost.sdk import ToolError

OBJECT = {"role": "admin", "level": 3, "none": None}


def filled(
    answers: dict[str, Any] | None = None, /, arguments: Any = None, **config: Any
) -> OutgoingRequest:
    given = {"url": "https://x.example/", **config}
    template = RequestTemplate(RequestConfig.model_validate(given))
    return template.fill({"arguments": arguments or {}, "answers": answers or {}}, "key-1")


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ("a/b", "/a/a%2Fb/b"),
        ("../c", "/a/..%2Fc/b"),
        ("ü ?#%", "/a/%C3%BC%20%3F%23%25/b"),
        ("%2e%2e", "/a/%252e%252e/b"),
        (True, "/a/true/b"),
        (["x", "y,z", 1], "/a/x,y%2Cz,1/b"),
        ({"b": 1, "c/": "d,"}, "/a/b,1,c%2F,d%2C/b"),
    ],
)
def test_a_value_in_the_path_is_one_segment(value: Any, path: str):
    request = filled(url="https://x.example/a/{arguments.v}/b", arguments={"v": value})
    assert urlsplit(request.url).path == path


@pytest.mark.parametrize("value", ["", ".", "..", [], [""], ["a", ".."], {}, {"a": ".."}])
def test_a_value_that_would_change_the_path_is_refused(value: Any):
    with pytest.raises(ToolError, match="must not be empty"):
        filled(url="https://x.example/a/{arguments.v}/b", arguments={"v": value})


@pytest.mark.parametrize("arguments", [{}, {"v": None}])
def test_a_missing_value_in_the_path_is_refused(arguments: dict[str, Any]):
    with pytest.raises(ToolError, match=r"arguments\.v is missing"):
        filled(url="https://x.example/{arguments.v}", arguments=arguments)


@pytest.mark.parametrize(
    ("style", "explode", "value", "expected"),
    [
        ("form", True, "a b", [("q", "a b")]),
        ("form", True, False, [("q", "false")]),
        ("form", True, ["a", 1], [("q", "a"), ("q", "1")]),
        ("form", False, ["a", 1], [("q", "a,1")]),
        ("form", True, [], []),
        ("form", True, OBJECT, [("role", "admin"), ("level", "3")]),
        ("form", False, OBJECT, [("q", "role,admin,level,3")]),
        ("spaceDelimited", False, ["a", "b"], [("q", "a%20b")]),
        ("pipeDelimited", False, OBJECT, [("q", "role%7Cadmin%7Clevel%7C3")]),
        ("deepObject", True, OBJECT, [("q[role]", "admin"), ("q[level]", "3")]),
        ("json", True, OBJECT, [("q", '{"role":"admin","level":3,"none":null}')]),
        ("form", True, None, []),
        ("json", True, None, []),
    ],
)
def test_a_parameter_is_written_by_its_style(style, explode, value, expected):
    field = {"name": "q", "value": "{arguments.v}", "style": style, "explode": explode}
    assert list(filled(query=[field], arguments={"v": value}).query) == expected
    body = {"type": "form", "fields": [field]}
    form = filled(method="POST", body=body, arguments={"v": value})
    assert form.content == FormBody(tuple(expected))


def test_headers_contain_their_values_and_are_left_out_without_one():
    headers = [
        {"name": "X-A", "value": "a {arguments.a}"},
        {"name": "X-B", "value": "{arguments.b}"},
        {"name": "X-C", "value": "{answers.q.c} {arguments.b}"},
        {"name": "X-D", "value": "{answers.q.c}"},
    ]
    request = filled({"q": {"c": 2}}, headers=headers, arguments={"a": 1})
    assert request.headers == (("X-A", "a 1"), ("X-D", "2"))


def test_json_body_values_keep_their_types_and_missing_ones_are_left_out():
    value = {
        "n": "{arguments.n}",
        "list": ["{arguments.list}", "{arguments.no}", 1, None],
        "text": "{arguments.n} of {arguments.list}",
        "gone": "{arguments.no}",
        "half": "{arguments.n} {arguments.no}",
        "{arguments.n}": True,
    }
    body = {"type": "json", "value": value}
    request = filled(method="POST", body=body, arguments={"n": 2, "list": [{"a": None}]})
    assert request.content == JsonBody(
        {
            "n": 2,
            "list": [[{"a": None}], 1, None],
            "text": '2 of [{"a":null}]',
            "{arguments.n}": True,
        }
    )


@pytest.mark.parametrize(
    ("value", "cookie"),
    [
        ("en-GB", "en-GB"),
        ("en; session=mine; role=admin", "en%3B%20session=mine%3B%20role=admin"),
        ('"a",\\b\tü%3B', "%22a%22%2C%5Cb%09%C3%BC%253B"),
    ],
)
def test_a_value_in_a_cookie_cannot_add_a_cookie(value: Any, cookie: str):
    headers = [
        {"name": "Cookie", "value": "lang={arguments.v}; sid={secrets.sid}"},
        {"name": "X-Cookie", "value": "{answers.v}"},
    ]
    request = filled({"v": "a; b"}, {"v": value}, headers=headers)
    assert request.headers == (
        ("Cookie", Template(("lang=", cookie, "; sid=", SecretHandle("sid")))),
        ("X-Cookie", "a; b"),
    )


def test_a_secret_stays_a_handle_in_the_request():
    key = SecretHandle("key")
    request = filled(
        method="POST",
        headers=[{"name": "Authorization", "value": "Bearer {secrets.key}"}],
        query=[{"name": "k", "value": "{secrets.key}"}],
        body={"type": "json", "value": {"a": ["{secrets.key}", "x{secrets.key}"]}},
    )
    assert request.headers[0] == ("Authorization", Template(("Bearer ", key)))
    assert request.query == (("k", Template((key,))),)
    assert request.content == JsonBody({"a": [Template((key,)), Template(("x", key))]})
    assert [each.name for each in request.handles()] == ["key"] * 4


def test_a_caller_cannot_name_a_secret():
    body = {"type": "json", "value": {"a": "{arguments.v}", "b": "x {arguments.v}"}}
    request = filled(method="POST", body=body, arguments={"v": "{secrets.key}"})
    assert request.content == JsonBody({"a": "{secrets.key}", "b": "x {secrets.key}"})
    assert not list(request.handles())


@pytest.mark.parametrize(
    "value", ["{arguments.a} {arguments.b}", "x {arguments.a}", "{arguments.b}"]
)
def test_a_body_of_text_around_a_missing_value_is_left_out(value):
    body = {"type": "json", "value": value}
    assert filled(method="POST", body=body, arguments={"a": None}).content is None
