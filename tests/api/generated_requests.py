"""Requests to the API that schemathesis makes of the document, right ones and wrong ones.

They are the same ones in each run, drawn once for each operation, and then sent as every caller.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

import orjson
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from requests import Request
from schemathesis import Case, GenerationMode, Response
from schemathesis.core import NOT_SET
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.core.parameters import ParameterLocation
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api.client import JSON, ApiClient
from tests.api.url_walk import RUNNING
from tests.openapi_document import FILE

EXAMPLES: Mapping[GenerationMode, int] = {GenerationMode.POSITIVE: 3, GenerationMode.NEGATIVE: 1}
SAME_AS_TOOLS = ("prompts", "resources", "templates")
"""Collections whose code is that of tools: they get right requests only, because drawing takes time."""
CHECKS = [
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
SERVER = "http://testserver"


@dataclass(frozen=True, slots=True)
class GeneratedRequest:
    """One request. `case` is that of schemathesis, with ids of things that exist."""

    case: Case[Any]
    is_right: bool

    def __str__(self) -> str:
        case = self.case
        return f"{case.method} {self.path} {dict(case.headers)} {case.body!r}"[:500]

    @property
    def path(self) -> str:
        """The address with its parameters."""
        query = urlencode(self.case.query or {}, doseq=True)
        path = f"/api/v1{self.case.formatted_path}"
        return f"{path}?{query}" if query else path

    @property
    def body(self) -> bytes:
        body = self.case.body
        if isinstance(body, bytes):
            return body
        return b"" if body is NOT_SET else json.dumps(body).encode()

    def send(self, client: ApiClient) -> Any:
        """Send it as a caller."""
        headers = {
            name: value
            for name, value in self.case.headers.items()
            if name.lower() not in ("authorization", "content-type", "cookie")
        }
        headers["Content-Type"] = self.case.media_type or JSON
        return client.send(str(self.case.method), self.path, self.body, **headers)

    def faults(self, response: Any) -> list[str]:
        """Return in what a response is not as the document says."""
        headers = {name.lower(): [value] for name, value in response.headers.items()}
        sent = Request(str(self.case.method), SERVER + self.path, data=self.body).prepare()
        answer = Response(response.status_code, headers, response.content, sent, 0.0, verify=False)
        # An ETag that is none matches nothing: this is an answer like any other refusal.
        is_expected = self.is_right or response.status_code == HTTPStatus.PRECONDITION_FAILED
        checks = CHECKS if is_expected else [*CHECKS, negative_data_rejection]
        try:
            self.case.validate_response(answer, checks=checks)
        except FailureGroup as group:
            return [f"{failure.title}: {failure.message}" for failure in group.exceptions]
        except Failure as failure:
            return [f"{failure.title}: {failure.message}"]
        return []


def generated_requests(ids: Mapping[str, Any]) -> Iterator[GeneratedRequest]:
    """Yield requests for every operation, about things with these ids."""
    for result in schemathesis.openapi.from_dict(_document()).get_all_operations():
        assert isinstance(result, Ok)
        operation = result.ok()
        if operation.definition.raw["operationId"] in RUNNING:
            continue
        for mode, number in EXAMPLES.items():
            is_right = mode is GenerationMode.POSITIVE
            if is_right or not set(SAME_AS_TOOLS).intersection(operation.path.split("/")):
                for case in _drawn(operation, mode, number):
                    yield GeneratedRequest(_aimed(case, ids), is_right)


def _document() -> dict[str, Any]:
    """The document without its credentials: callers have their own, so a wrong one would not be sent."""
    document: dict[str, Any] = orjson.loads(FILE.read_bytes())
    document.pop("security", None)
    for path in document["paths"].values():
        for operation in path.values():
            if isinstance(operation, dict):
                operation.pop("security", None)
    return document


def _drawn(
    operation: APIOperation[Any, Any, Any, Any], mode: GenerationMode, number: int
) -> list[Case[Any]]:
    cases: list[Case[Any]] = []

    @settings(
        max_examples=number,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy(generation_mode=mode))
    def draw(case: Case[Any]) -> None:
        cases.append(case)

    try:
        draw()
    except Unsatisfiable:  # an operation without parameters has no wrong request
        assert mode is GenerationMode.NEGATIVE, operation.label
    return cases


def _aimed(case: Case[Any], ids: Mapping[str, Any]) -> Case[Any]:
    """Let a request meet something that exists, where it is right: drawn ids and ETags never do."""
    assert case.meta is not None
    negated = {
        location
        for location, component in case.meta.components.items()
        if component.mode is GenerationMode.NEGATIVE
    }
    if ParameterLocation.PATH not in negated:
        types = case.path.split("/")[3:4]
        for name in case.path_parameters:
            by_type = f"{types[0].removesuffix('s')}.{name}" if types else name
            case.path_parameters[name] = str(ids.get(by_type, ids.get(name)))
    if ParameterLocation.HEADER not in negated and "If-Match" in case.headers:
        case.headers["If-Match"] = "*"
    return case
