"""Errors of a document are reported to the user, and faults of the platform are logged."""

import logging
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import orjson
import pytest

from mcphost.kinds.http import openapi, openapi_finding, openapi_job
from mcphost.kinds.http.openapi import FAULT, operations
from mcphost.kinds.http.openapi_documents import OpenApiError
from mcphost.kinds.http.openapi_finding import Reading, find
from mcphost.sandbox.single import JobLimits

SCHEMA = {
    "type": "object",
    "properties": {"id": {"type": "integer", "readOnly": True}, "at": {"pattern": "^a"}},
    "required": ["at"],
    "exclusiveMinimum": True,
    "minimum": 1,
    "nullable": True,
    "enum": ["a"],
    "example": 1,
    "items": {"$ref": "#/components/schemas/a"},
}
RICH: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": "t"},
    "servers": [{"url": "https://{h}.example.com", "variables": {"h": {"default": "api"}}}],
    "security": [{"key": []}, {"query": [], "bearer": [], "cookie": []}],
    "paths": {
        "/a/{id}{n}?x=1": {
            "parameters": [
                {"name": "id", "in": "path", "style": "label", "schema": {"type": "string"}},
                {"name": "n", "in": "path", "style": "matrix", "schema": {"type": "string"}},
            ],
            "post": {
                "operationId": "a",
                "summary": "s",
                "description": "d",
                "parameters": [
                    {"$ref": "#/components/parameters/q"},
                    {
                        "name": "j",
                        "in": "query",
                        "content": {"application/json": {"schema": SCHEMA}},
                    },
                    {"name": "H", "in": "header", "description": "h", "schema": {}},
                ],
                "requestBody": {"content": {"application/json": {"schema": SCHEMA}}},
            },
            "put": {
                "requestBody": {
                    "content": {
                        "multipart/form-data": {
                            "schema": {
                                "properties": {
                                    "f": {"type": "string", "format": "binary"},
                                    "g": {
                                        "type": "array",
                                        "items": {"contentMediaType": "image/png"},
                                    },
                                    "o": {"type": "object"},
                                }
                            },
                            "encoding": {"f": {"contentType": "image/png"}, "o": {"style": "form"}},
                        }
                    }
                }
            },
            "patch": {
                "security": [{"oauth": []}],
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/x-www-form-urlencoded": {
                            "schema": {"properties": {"p": {}}},
                            "encoding": {"p": {"style": "form", "explode": False}},
                        }
                    },
                },
            },
        }
    },
    "components": {
        "schemas": {"a": SCHEMA},
        "parameters": {"q": {"name": "q", "in": "query", "style": "form", "explode": True}},
        "securitySchemes": {
            "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
            "query": {"type": "apiKey", "in": "query", "name": "k"},
            "bearer": {"type": "http", "scheme": "bearer"},
            "cookie": {"type": "apiKey", "in": "cookie", "name": "c"},
            "oauth": {"type": "oauth2", "flows": {}},
        },
    },
}
ODD = (None, True, 7, 1e300, "", "x", "#/", [], [1], [[]], {}, {"a": 1}, {"$ref": "#/paths/99999"})


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each value in a document."""
    if path:
        yield path
    children = (
        node.items()
        if isinstance(node, dict)
        else enumerate(node if isinstance(node, list) else ())
    )
    for key, child in children:
        yield from places(child, (*path, key))


def with_value(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    document = deepcopy(RICH)
    node: Any = document
    for step in path[:-1]:
        node = node[step]
    node[path[-1]] = value
    return document


@pytest.mark.parametrize("value", ODD, ids=repr)
def test_no_value_in_any_place_of_a_document_causes_a_fault(value: Any) -> None:
    assert all(each.config for each in operations(RICH))
    for path in places(RICH):
        document = with_value(path, value)
        if isinstance(document["paths"], dict):
            assert [each.fault for each in operations(document) if each.fault] == [], path


TWICE = [{"$ref": "#/components/schemas/x"}] * 2
COMPOSED: dict[str, dict[str, Any]] = {
    "itself": {"x": {"allOf": TWICE}},
    "another": {"x": {"allOf": [{"$ref": "#/components/schemas/y"}]}, "y": {"oneOf": TWICE}},
    "levels": {
        "x": {"anyOf": [{"$ref": "#/components/schemas/l0"}] * 10},
        **{
            f"l{n}": {"allOf": [{"$ref": f"#/components/schemas/l{n + 1}"}] * 10} for n in range(20)
        },
    },
}


@pytest.mark.parametrize(
    "media_type", ["application/json", "application/x-www-form-urlencoded", "multipart/form-data"]
)
@pytest.mark.parametrize("schemas", COMPOSED.values(), ids=COMPOSED)
def test_a_body_that_is_composed_of_itself_is_refused(
    schemas: dict[str, Any], media_type: str
) -> None:
    content = {media_type: {"schema": {"$ref": "#/components/schemas/x"}}}
    document = {
        "openapi": "3.1.0",
        "servers": [{"url": "https://api.example.com"}],
        "paths": {"/a": {"post": {"requestBody": {"content": content}}}},
        "components": {"schemas": schemas},
    }
    (operation,) = operations(document)
    assert operation.problem
    assert not operation.fault


def test_a_list_index_with_too_many_digits_in_a_reference_is_reported() -> None:
    path = ("paths", "/a/{id}{n}?x=1", "post", "parameters", 0)
    document = with_value(path, {"$ref": f"#/servers/{'9' * 5_000}"})
    assert "refers to nothing" in next(operations(document)).problem


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents are read in this process, where the code can be replaced."""

    def run_here(module: str, job: bytes, limits: JobLimits) -> bytes:
        return openapi_job.run(job)

    monkeypatch.setattr(openapi_finding, "run_single", run_here)


def broken(*arguments: object) -> Any:
    raise KeyError("a member that we forgot")


@pytest.mark.usefixtures("in_this_process")
def test_a_fault_in_one_operation_is_logged_and_not_blamed_on_the_document(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(openapi, "input_schema", broken)
    found = find(orjson.dumps(RICH), Reading())
    assert {each.operation.problem for each in found.operations} == {FAULT}
    assert "a member that we forgot" in caplog.text
    assert {record.levelno for record in caplog.records} == {logging.ERROR}


@pytest.mark.usefixtures("in_this_process")
def test_a_fault_in_the_whole_document_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(openapi_job, "_described", broken)
    with pytest.raises(OpenApiError, match="fault of the platform"):
        find(orjson.dumps(RICH), Reading())
    assert "a member that we forgot" in caplog.text


def test_a_process_that_ends_without_a_result_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # The program of a job that has no `run`: its process ends with a traceback.
    monkeypatch.setattr(openapi_finding, "_JOB", "mcphost.kinds.http.configs")
    with pytest.raises(OpenApiError, match="fault of the platform"):
        find(orjson.dumps(RICH), Reading())
    assert "its process ended" in caplog.text
