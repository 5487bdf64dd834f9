"""Invalid configurations of HTTP tools: the field and the message of each refusal."""

from typing import Any

import pytest

from mcphost.kinds.http.kind import HttpKind
from mcphost.kinds.kind import KindError
from mcphost.sandbox.pool import SearchFailedError

URL = "https://api.example.com/orders"
FORM = {"type": "object", "properties": {"ok": {"type": "boolean"}}}


async def _no_search(tenant: str, expression: str, data: Any) -> Any:
    raise SearchFailedError("not here")


KIND = HttpKind(_no_search)


def config(request: dict[str, Any] | None = None, **others: Any) -> dict[str, Any]:
    return {"request": {"url": URL, **(request or {})}, **others}


def problems(written: dict[str, Any]) -> dict[str, list[str]]:
    with pytest.raises(KindError) as refused:
        KIND.compile(written)
    return dict(refused.value.problems)


def assert_refused(written: dict[str, Any], field: str, words: str) -> None:
    """Assert that one field is refused, with these words."""
    found = problems(written)
    assert list(found) == [field] and words in found[field][0]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("", "whole address"),
        ("ftp://x.example/", "whole address"),
        ("https://{arguments.host}/", "host must not have placeholders"),
        ("https://ada:pass@x.example/", "user name or a password"),
        ("https://x.example/?a=1", "no query and no fragment"),
        ("https://x.example/#a", "no query and no fragment"),
        ("https://x.example/a b", "spaces or control"),
        ("https://x.example/a\\b", "backslashes"),
        ("https://x.example:0/", "port of the URL"),
        ("https://x_.-.example/", "not a valid name"),
        ("https://x.example/{secrets.key}", "A secret may stand in headers"),
        ("https://x.example/" + "a" * 8192, "at most 8192"),
    ],
)
def test_an_invalid_address_is_refused(url: str, words: str):
    assert_refused(config({"url": url}), "request.url", words)


def header(name: str, value: str) -> dict[str, Any]:
    return {"headers": [{"name": name, "value": value}]}


def query(**field: Any) -> dict[str, Any]:
    return {"query": [{"name": "a", "value": "x", **field}]}


def posted(kind: str, **body: Any) -> dict[str, Any]:
    return {"method": "POST", "body": {"type": kind, **body}}


NAME, VALUE = "headers.0.name", "headers.0.value"


@pytest.mark.parametrize(
    ("request_", "field", "words"),
    [
        ({"method": "TRACE"}, "method", "'GET', 'HEAD'"),
        ({**posted("json", value=1), "method": "GET"}, "", "GET request has no body"),
        (header("Host", "x"), NAME, "sets Host itself"),
        (header("Idempotency-Key", "x"), NAME, "sets Idempotency-Key itself"),
        (header("X", "a\nb"), VALUE, "one line of ASCII"),
        (header("X", "ü"), VALUE, "one line of ASCII"),
        (query(style="matrix"), "query.0.style", "'form', 'spaceDelimited'"),
        (posted("json", value={"a": "{secrets.a.b}"}), "body", "a secret has a name and no parts"),
        (posted("text", text="{secrets.key}"), "body.text", "A secret may stand in headers"),
        (posted("text", text="x", media_type="text"), "body.media_type", "Write a media type"),
        ({"timeout_seconds": 121}, "timeout_seconds", "at most 120."),
        ({"retries": 4}, "retries", "at most 3"),
    ],
)
def test_an_invalid_request_configuration_is_refused(
    request_: dict[str, Any], field: str, words: str
):
    assert_refused(config(request_), f"request.{field}".rstrip("."), words)


@pytest.mark.parametrize(
    ("response", "field", "words"),
    [
        ({"select": "a["}, "select", "no JMESPath expression"),
        ({"select": "(" * 999}, "select", "no JMESPath expression"),
        ({"errors": ["4x"]}, "errors.0", "a number such as 404"),
    ],
)
def test_an_invalid_response_configuration_is_refused(
    response: dict[str, Any], field: str, words: str
):
    assert_refused(config(response=response), f"response.{field}", words)


def asked(key: str = "sure", **others: Any) -> dict[str, Any]:
    return {"key": key, "message": "Sure?", "requested_schema": FORM, **others}


@pytest.mark.parametrize(
    ("questions", "field", "words"),
    [
        ([asked("no key")], "0.key", "A key has 1 to 64"),
        ([asked(), asked()], "1.key", "two questions with the key 'sure'"),
        ([asked(message="{secrets.key}?")], "0.message", "A secret may stand in"),
        ([asked(when={"secrets.key": [1]})], "0", "is no path such as"),
        ([asked(when={"answers.sure.ok": [True]})], "0.when", "no earlier question 'sure'"),
        ([asked(message="{answers.other.ok}")], "0.message", "no earlier question 'other'"),
    ],
)
def test_an_invalid_input_request_is_refused(questions: list[Any], field: str, words: str):
    assert_refused(config(questions=questions), f"questions.{field}", words)


@pytest.mark.parametrize("field", ["input_schema", "output_schema"])
def test_an_invalid_schema_is_refused(field: str):
    assert list(problems(config(**{field: {"type": "no type"}}))) == [field]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("{arguments.city}", "no argument 'city'"),
        ("{answers.sure.comment}", "no answer {answers.sure.comment}"),
    ],
)
def test_a_placeholder_without_a_value_is_refused(value: str, words: str):
    request = {"query": [{"name": "q", "value": value}]}
    assert_refused(config(request, questions=[asked()]), "request.query.0.value", words)


@pytest.mark.parametrize(
    ("method", "read_only", "destructive", "idempotent"),
    [
        ("GET", True, False, True),
        ("POST", False, False, False),
        ("PUT", False, True, True),
        ("DELETE", False, True, True),
    ],
)
def test_tool_hints_follow_from_the_method_unless_configured(
    method, read_only, destructive, idempotent
):
    hints = KIND.compile(config({"method": method})).annotations
    assert hints == {
        "readOnlyHint": read_only,
        "destructiveHint": destructive,
        "idempotentHint": idempotent,
        "openWorldHint": True,
    }
    given = KIND.compile(config({"method": method}, read_only=True)).annotations
    assert given["readOnlyHint"] is True and given["destructiveHint"] is destructive


def test_the_secrets_of_a_configuration_are_listed():
    body = {"type": "json", "value": {"k": ["x {secrets.c}"]}}
    request = {
        "method": "POST",
        "headers": [{"name": "Authorization", "value": "Bearer {secrets.a}"}],
        "query": [{"name": "k", "value": "{secrets.b}"}],
        "body": body,
    }
    assert KIND.secrets_of(config(request)) == {"a", "b", "c"}
    assert KIND.secrets_of({"request": 5}) == frozenset()
    assert [
        (each.field, each.secret, each.secret_place) for each in KIND.sendings_of(config(request))
    ] == [
        ("request.url", "", ""),
        ("request.query.0.value", "b", "query"),
        ("request.headers.0.value", "a", "header"),
        ("request.body.value", "c", "body"),
    ]


def file(content: str, **others: str) -> dict[str, Any]:
    return {"files": [{"name": "f", "content": content, **others}]}


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        (file("a"), ".files.0.content", "Name the"),
        (file("{secrets.key}"), ".files.0.content", "A secret may stand in"),
        (file("{arguments.b}"), ".files.0.content", "There is no argument 'b'"),
        (
            file("{arguments.a}", file_name="{arguments.c}"),
            ".files.0.file_name",
            "There is no argument 'c'",
        ),
    ],
)
def test_a_form_with_files_is_refused(body: dict[str, Any], field: str, words: str):
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    written = config(posted("multipart", **body), input_schema=schema)
    assert_refused(written, f"request.body{field}", words)


def inspected(**others: Any) -> dict[str, list[str]]:
    return dict(KIND.inspect(config(**others), "acme"))


CITY = {"type": "object", "properties": {"city": {"type": "string"}}}


@pytest.mark.parametrize(
    ("second", "field", "words"),
    [
        ({"message": "Sure of {arguments.town}?"}, "message", "no argument 'town'"),
        ({"when": {"answers.sure.why": [1]}}, "when", "no answer {answers.sure.why}"),
    ],
)
def test_an_input_request_with_an_invalid_reference_is_reported(
    second: Any, field: str, words: str
):
    questions = [asked(), asked("more", **second)]
    found = inspected(input_schema=CITY, questions=questions)
    assert list(found) == [f"questions.1.{field}"]
    assert words in found[f"questions.1.{field}"][0]
    KIND.compile(config(input_schema=CITY, questions=questions))  # it may have been published


@pytest.mark.parametrize("expression", ["nope(@)", "items[?nope(a) > `1`]", "sort_by(a, &nope(b))"])
def test_an_unknown_function_is_reported(expression: str):
    found = inspected(response={"select": expression})
    assert found == {"response.select": ["JMESPath has no function nope()."]}
    assert inspected(response={"select": "sort_by(items, &name)[].to_string(@)"}) == {}
