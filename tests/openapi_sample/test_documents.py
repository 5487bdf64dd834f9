"""Each document is imported, and each request is what the document says: by its own `x-tests`, written by
hand after OpenAPI, RFC 6570 and RFC 7578, and by `openapi-core`, which shares no code with the product.

In an operation `x-tests` has arguments with the request that they become, or with the `error` that refuses
them; `x-refused` why it cannot become a tool, `x-note` what is said of the tool.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from mcphost.kinds.functions.program import InvalidArgumentsError
from mcphost.kinds.http.openapi import FAULT, Operation
from mcphost.kinds.http.openapi_documents import read
from mcphost.kinds.http.openapi_swagger import as_openapi
from mcphost.sdk import ToolError
from tests.openapi_corpus.__main__ import describe
from tests.openapi_corpus.classes import NEW, disagreement_class
from tests.openapi_corpus.validation import Validator, WireRequest
from tests.openapi_corpus.wire import imported, request_for, sent

DOCUMENTS: Final = sorted((Path(__file__).parent / "documents").iterdir())
MIN_DOCUMENTS: Final = 40
_BOUNDARY: Final = re.compile(r"mcphost-[0-9a-f]{48}")
_ORIGIN: Final = "https://api.example.com"
DISAGREEMENTS: Final[Mapping[str, str]] = {
    "composed_schemas POST /discriminator": "oneOf",
    "composed_schemas POST /nullable": "null",
    "composed_schemas POST /read-only": "required",
    "form_deep POST /deep": "style",
    "numbers GET /choices": "enum",
    "openapi_3_2 GET /things": "library",
    "parameters_of_json GET /text": "library",
    "path_addresses GET /a b/\u00e9": "path",
    "path_styles GET /label{p}": "style",
    "path_styles GET /matrix-exploded{p}": "style",
    "path_styles GET /matrix{p}": "style",
    "path_values DELETE /trailing/{id}/": "style",
    "query_types GET /nullable": "type",
    "reference_anchors POST /anchor": "reference",
    "security_choices GET /default": "library",
    "security_choices GET /second": "library",
    "shared_parameters GET /shared": "empty",
    "unusable_keywords POST /keywords": "type",
    "yaml_texts GET /versions/{007}": "library",
}
"""Operations about which `openapi-core` and the document's own `x-tests` differ, with the class of its error
in `tests/openapi_corpus/classes.py`, which has the reason."""


@cache
def loaded(path: Path) -> tuple[Mapping[str, Any], Mapping[str, Operation]]:
    document = as_openapi(read(path.read_bytes()))
    return document, {operation.source: operation for operation in imported(document)}


def cases() -> Iterator[Any]:
    """Yield the name of a document, a source, and what the document says of it."""
    for path in DOCUMENTS:
        document, found = loaded(path)
        for source in found:
            method, _, place = source.partition(" ")
            item = document["paths"][place]
            yield pytest.param(
                path, source, item.get(method.lower(), {}), id=f"{path.stem} {source}"
            )


CASES: Final = list(cases())


def test_there_are_enough_documents_and_each_operation_has_an_expectation() -> None:
    assert len(DOCUMENTS) >= MIN_DOCUMENTS
    silent = [
        case.id
        for case in CASES
        if not {"x-tests", "x-refused", "$ref"} & set(case.values[2]) and case.values[2]
    ]
    assert silent == []


@pytest.mark.parametrize(("path", "source", "written"), CASES)
def test_an_operation_becomes_the_requests_that_its_document_says(
    path: Path, source: str, written: Mapping[str, Any]
) -> None:
    operation = loaded(path)[1][source]
    assert operation.problem != FAULT, operation.fault
    if "x-refused" in written or "$ref" in written or not written:
        problem = written.get("x-refused", "")
        assert (operation.config is None or not written) and problem in operation.problem
        return
    assert operation.config is not None, operation.problem
    assert any(written.get("x-note", "") in note for note in (*operation.notes, ""))
    for test in written["x-tests"]:
        if "error" in test:
            with pytest.raises((InvalidArgumentsError, ToolError)) as refused:
                request_for(operation, test["arguments"])
            assert test["error"] in str(refused.value)
        else:
            _compare(request_for(operation, test["arguments"]), test)


def _compare(request: WireRequest, test: Mapping[str, Any]) -> None:
    method, _, target = test["sent"].partition(" ")
    address = target if "://" in target else f"{_ORIGIN}{target}"
    assert f"{request.method.upper()} {request.host_url}{request.target}" == f"{method} {address}"
    for name, value in test.get("headers", {}).items():
        assert request.headers.get(name) == value, name
    body = (request.body or b"").decode()
    if "body" in test:
        assert body == test["body"]
    for part in test.get("parts", ()):
        assert part in _BOUNDARY.sub("", body)


def test_openapi_core_agrees_with_each_request_but_for_its_known_faults() -> None:
    """Arguments are generated from the schema of the tool, and those of `x-tests` are tried as well."""
    disagreements: dict[str, str] = {}
    for case in CASES:
        path, source, written = case.values
        document, found = loaded(path)
        if found[source].config is None:
            continue
        requests = [request_for(found[source], test["arguments"]) for test in _sendable(written)]
        generated = sent(found[source])
        assert isinstance(generated, WireRequest), (case.id, generated)
        validator = Validator(document)
        for request in (generated, *requests):
            if errors := validator.problems(source, request):
                text = " | ".join(map(describe, errors[:4]))
                disagreements[str(case.id)] = disagreement_class(text)
                assert disagreements[str(case.id)] != NEW, (
                    f"{text}\n{request.target} {request.body!r}"
                )
    classes = {case: name.partition(":")[0] for case, name in disagreements.items()}
    assert classes == DISAGREEMENTS


def _sendable(written: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [test for test in written.get("x-tests", ()) if "error" not in test]
