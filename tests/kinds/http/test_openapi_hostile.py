"""Documents that would take much time or memory are refused with the reason, or imported."""

from typing import Any

import orjson
import pytest

from mcphost.kinds.http import openapi_documents, openapi_references
from mcphost.kinds.http.openapi import operations
from mcphost.kinds.http.openapi_documents import OpenApiError, read
from mcphost.kinds.http.openapi_finding import FoundDocument, Reading, find

BASE = {"openapi": "3.1.0", "info": {}, "servers": [{"url": "https://api.example.com"}]}
REF = "#/components/schemas/"


def document(schemas: dict[str, Any], wanted: Any, paths: int = 1) -> bytes:
    """Return a document whose operations have a body of the wanted schema."""
    body = {"content": {"application/json": {"schema": wanted}}}
    listed = {f"/{number}": {"post": {"requestBody": body}} for number in range(paths)}
    return orjson.dumps({**BASE, "paths": listed, "components": {"schemas": schemas}})


def problem(schemas: dict[str, Any], wanted: Any) -> str:
    (found,) = operations(read(document(schemas, wanted)))
    return found.problem


def chain(length: int) -> dict[str, Any]:
    return {str(n): {"$ref": f"{REF}{n + 1}"} for n in range(length)} | {str(length): {}}


def nested(depth: int, keyword: str) -> Any:
    schema: Any = {}
    for _ in range(depth):
        schema = {keyword: schema}
    return schema


def doubled(levels: int) -> dict[str, Any]:
    """Return schemas of which each has the next one twice."""
    found: dict[str, Any] = {
        str(n): {"allOf": [{"$ref": f"{REF}{n + 1}"}] * 2} for n in range(levels)
    }
    return found | {str(levels): {"type": "object"}}


@pytest.mark.parametrize(
    ("schemas", "wanted", "said"),
    [
        ({"a": {"$ref": f"{REF}b"}, "b": {"$ref": f"{REF}a"}}, {"$ref": f"{REF}a"}, "to itself"),
        (chain(5_000), {"$ref": f"{REF}0"}, "too many references"),
        (doubled(60), {"$ref": f"{REF}0"}, "more than 20000 subschemas"),
        ({}, nested(150, "not"), "nested too deep"),
        ({}, {"enum": list(range(100_000))}, "bytes, more than 65536"),
        ({}, {"allOf": [{"type": "object"}] * 10_000}, "more than 6,000 schemas"),
        ({}, {"$ref": "file:///etc/passwd"}, "outside the document"),
    ],
)
def test_an_unusable_schema_is_refused_with_the_reason(
    schemas: dict[str, Any], wanted: Any, said: str
):
    assert said in problem(schemas, wanted)


@pytest.mark.parametrize("pattern", ["(a+)+\\1$", "(a{1000}){1000}", "("])
def test_a_pattern_that_may_be_expensive_is_left_to_the_service(pattern: str) -> None:
    wanted = {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}}
    (found,) = operations(read(document({}, wanted)))
    assert found.config is not None, found.problem
    properties = found.config["input_schema"]["properties"]["body"]["properties"]
    assert properties == {"a": {"type": "string"}}


def test_the_total_work_for_all_operations_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    # Far below the real limit, which takes most of a minute to reach.
    monkeypatch.setattr(openapi_references, "MAX_WORK", 2_000)
    schemas, wanted = {"a": {"allOf": [{"type": "object"}] * 190}}, {"$ref": f"{REF}a"}
    within = list(operations(read(document(schemas, wanted, 9))))
    assert [each.config is not None for each in within] == [True] * 9
    with pytest.raises(OpenApiError, match=r"more than 2,000 schemas.* Narrow the paths"):
        list(operations(read(document(schemas, wanted, 12))))


def test_a_document_with_too_many_operations_is_refused() -> None:
    paths = {f"/{number}": {"get": {}} for number in range(5_001)}
    with pytest.raises(OpenApiError, match="more than 5000 operations"):
        list(
            operations(
                read(orjson.dumps({**BASE, "paths": paths})), is_selected=lambda source: False
            )
        )


BOMB = b"a: &a [x,x,x,x,x,x,x,x,x,x]\n" + b"".join(
    b"%c: &%c [%s]\n" % (97 + n, 97 + n, b",".join([b"*%c" % (96 + n)] * 10)) for n in range(1, 9)
)


@pytest.mark.parametrize(
    ("data", "said"), [(BOMB, "more than 2,000,000 values"), (b"a: *nothing", "or to nothing")]
)
def test_a_document_that_needs_too_many_resources_is_refused_by_its_process(
    data: bytes, said: str
) -> None:
    with pytest.raises(OpenApiError) as caught:
        find(data, Reading())
    assert said in str(caught.value)


DEEP, MANY = "nested deeper than 200 levels", "more than 2,000,000 values"


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"[" * 100_000, DEEP),
        (b"- " * 100_000, DEEP),
        (b"[" + b"[]," * 1_001 + b"0]", MANY),
        (b"a: 0\n---\nb: 0\n", "more than one document"),
        (b"\x00" * 1000, "neither JSON nor YAML"),
    ],
)
def test_a_document_too_deep_or_with_too_many_values_is_refused(data, said, monkeypatch):
    monkeypatch.setattr(openapi_documents, "MAX_VALUES", 1_000)
    with pytest.raises(OpenApiError) as caught:
        read(data)
    assert said in str(caught.value)


def found(data: bytes, how: Reading = Reading(), *, kept: bool = False) -> FoundDocument:  # noqa: B008
    return find(data, how, kept=kept)


def test_a_stored_document_yields_the_same_operations_as_its_text() -> None:
    data = document({}, {"type": "object"}, 3)
    first = found(data)
    wanted = Reading(sources=["POST /1"])
    again = found(first.kept, wanted, kept=True)
    assert again.sources == first.sources == {"POST /0", "POST /1", "POST /2"}
    assert [bool(each.operation.config) for each in again.operations] == [False, True, False]
    assert not again.kept
