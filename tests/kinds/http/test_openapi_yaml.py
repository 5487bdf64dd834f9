"""YAML of OpenAPI documents is read by the core schema of YAML 1.2 (section 10.3)."""

from typing import Any

import pytest

from mcphost.kinds.http.openapi import operations
from mcphost.kinds.http.openapi_documents import OpenApiError, read

LONG = 200_000


def value_of(text: str) -> Any:
    """Return what a document has where this text stands."""
    return read(f"openapi: 3.1.0\npaths: {{}}\nx: {text}\n".encode())["x"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((word, None) for word in ("null", "Null", "NULL", "~", "")),
        *((word, True) for word in ("true", "True", "TRUE")),
        *((word, False) for word in ("false", "False", "FALSE")),
        ("0", 0), ("-7", -7), ("+7", 7), ("007", 7), ("0o17", 15), ("0xfF", 255),
        ("18446744073709551615", 2**64 - 1), ("18446744073709551616", 2.0**64),
        ("-9223372036854775808", -(2**63)), ("-9223372036854775809", -(2.0**63)),
        ("0xffffffffffffffffff", float(2**72)), ("0" * 41 + "5", 5.0),
        ("9" * LONG, None), ("-" + "9" * LONG, None), ("0x" + "f" * LONG, None),
        ("1.5", 1.5), ("-.5", -0.5), ("1.", 1.0), ("1e3", 1000.0), ("1.5E-3", 0.0015),
        ("1e400", None), (".inf", None), ("-.INF", None), (".NaN", None),
        ("!!str 5", "5"), ("!!str", ""), ("! 5", "5"), ("!!int 5", 5), ("!!float 5", 5),
        ("!!null ~", None), ("!!bool true", True), ('!!int "5"', 5),
    ],
)  # fmt: skip
def test_a_yaml_scalar_has_the_value_of_the_core_schema(text: str, value: Any) -> None:
    found = value_of(text)
    assert (found, type(found) is bool) == (value, type(value) is bool)


@pytest.mark.parametrize(
    "text",
    [
        "yes", "Yes", "YES", "no", "No", "NO", "on", "On", "off", "OFF", "y", "n", "Y", "N",
        "1:30", "190:20:30", "190:20:30.15", "1:" + "00:" * LONG + "00", "-1:2", "1_000",
        "0b1010", "1_0.5", "2020-01-01", "2001-12-14t21:59:43.10-05:00", "=", "0x", "0o8", "+",
        ".", "-", "1e", "1.5.0", "3.1.0", "+0x1", "tRue", "nULL", ".Nan", "infinity", "nan",
    ],
)  # fmt: skip
def test_scalars_that_only_yaml_1_1_converts_are_strings(text: str) -> None:
    assert value_of(text if text != "-" else '"-"') == text


@pytest.mark.parametrize(
    "text",
    [
        "!!int 1:30", "!!int 1:" + "00:" * LONG + "00", "!!float 1:30.5", "!!int yes",
        "!!bool yes", "!!int true", "!!int 1.5", "!!null no", "!!timestamp 2020-01-01",
        "!!binary aGk=", "!!set {a}", "!!omap []", "!own 5", "!!python/name:os.system x",
    ],
)  # fmt: skip
def test_a_tag_that_json_cannot_represent_or_that_does_not_fit_is_refused(text: str) -> None:
    with pytest.raises(OpenApiError, match="values that JSON does not have"):
        value_of(text)


TEXTS = """\
openapi: 3.1
info: {title: 1.10, version: 1.0}
servers: [{url: 'https://api.example.com/{v}', variables: {v: {default: 1.10, enum: [1.10]}}}]
paths:
  /a/{007}:
    get:
      operationId: 010
      summary: 1e3
      parameters:
        - {name: 007, in: path, required: true, schema: {type: string, default: 0x1F}}
        - {name: null, in: query, schema: {type: string, enum: [1.10, 0x1F, .5, TRUE, .inf, 1e400, ~]}}
        - {name: list, in: query, schema: {type: array, items: {type: string, enum: [1.0]}, default: [1.0]}}
        - {name: number, in: query, schema: {type: number, enum: [1.10, 0x1F], default: 1.10}}
        - {name: other, in: query, schema: {$ref: '#/components/schemas/T', default: 1.10}}
        - {name: part, in: query, schema: {allOf: [{type: string}], enum: [1.10, null]}}
        - {name: both, in: query, schema: {type: [string, 'null'], enum: [1.10, null]}}
  /b:
    post:
      requestBody:
        content:
          application/json:
            schema:
              type: object
              required: [on, 1, true, null]
              dependentRequired: {on: [1.10]}
              properties: {on: {}, 1: {}, true: {}, null: {}, enum: {type: integer}}
              default: {name: 1.10, required: [1]}
components: {schemas: {T: {type: string, const: 1.10}}}
"""


def test_a_scalar_keeps_its_text_where_openapi_has_a_text() -> None:
    get, post = operations(read(TEXTS.encode()))
    assert (get.name, get.title) == ("010", "1e3")
    assert get.config is not None, get.problem
    assert get.config["request"]["url"] == "https://api.example.com/1.10/a/{arguments.007}"
    arguments = get.config["input_schema"]["properties"]
    assert arguments["007"]["default"] == "0x1F"
    assert arguments["null"]["enum"] == ["1.10", "0x1F", ".5", "TRUE", ".inf", "1e400", None]
    assert (arguments["list"]["items"]["enum"], arguments["list"]["default"]) == (["1.0"], ["1.0"])
    assert (arguments["number"]["enum"], arguments["number"]["default"]) == ([1.1, 31], 1.1)
    assert arguments["other"]["default"] == "1.10"
    assert get.config["input_schema"]["$defs"]["T"]["const"] == "1.10"
    assert arguments["part"]["enum"] == arguments["both"]["enum"] == ["1.10", None]
    assert post.config is not None, post.problem
    body = post.config["input_schema"]["properties"]["body"]
    assert body["required"] == ["on", "1", "true", "null"]
    assert body["dependentRequired"] == {"on": ["1.10"]}
    assert body["default"] == {"name": 1.1, "required": [1]}
