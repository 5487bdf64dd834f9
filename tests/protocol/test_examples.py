"""All examples of the specification parse, and the requests among them open."""

from pathlib import Path

import mcp_types
import orjson
import pytest
from mcp_types import jsonrpc
from pydantic import TypeAdapter

from tests.protocol.requests import META, opened
from tests.wire import (
    FULL_RESPONSES,
    REQUESTS,
    SPEC,
    check_message,
    check_response,
    check_type,
    definitions,
)

EXAMPLES = sorted((SPEC / "examples-2026-07-28").glob("*/*.json"))
OPENABLE = [path for path in EXAMPLES if path.parent.name in REQUESTS.values()]
PARAMS = {f"{name}Params": method for method, name in REQUESTS.items()}
OPENABLE_PARAMS = [path for path in EXAMPLES if path.parent.name in PARAMS]
RESPONSES = [
    path
    for path in EXAMPLES
    if path.parent.name.endswith("ResultResponse")
    # It lacks the caching hints that server/utilities/caching requires. The schema accepts it as an
    # interim result, which has hardly any required members.
    and path.stem != "read-resource-result-response"
]
METHODS = {name: method for method, name in REQUESTS.items()}


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def read(path: Path):
    return orjson.loads(path.read_bytes())


def wire_type(name: str):
    """Return the type of `mcp_types` for a name in the specification's schema, None if it has none."""
    if name.endswith("ResultResponse"):
        return jsonrpc.JSONRPCResponse
    if name in FULL_RESPONSES:
        return jsonrpc.JSONRPCError
    if name.endswith("Error"):
        return jsonrpc.ErrorData
    if name == "CreateMessageResult":
        return mcp_types.CreateMessageResultWithTools
    return getattr(mcp_types, name, None)


def test_the_examples_of_the_specification_are_present():
    assert len(EXAMPLES) > 100
    assert len(OPENABLE) >= 9


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_every_example_is_valid_by_the_schema(path):
    assert path.parent.name in definitions()
    check_type(path.parent.name, read(path))


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_an_example_parses_with_the_wire_types(path):
    kind = wire_type(path.parent.name)
    if kind is not None:
        TypeAdapter(kind).validate_python(read(path))


@pytest.mark.parametrize("path", OPENABLE, ids=name_of)
def test_an_example_of_a_request_opens(path):
    message = check_message(read(path), direction="client")
    exchange = opened(message)
    assert (exchange.id, exchange.method) == (message["id"], message["method"])
    assert exchange.params == message["params"]


@pytest.mark.parametrize("path", OPENABLE_PARAMS, ids=name_of)
def test_an_example_of_params_opens_within_a_request(path):
    method = PARAMS[path.parent.name]
    params = {"_meta": META, **read(path)}
    exchange = opened({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    assert exchange.params == params


@pytest.mark.parametrize("path", RESPONSES, ids=name_of)
def test_an_example_of_a_response_passes_the_schema_check(path):
    method = METHODS[path.parent.name.replace("ResultResponse", "Request")]
    check_response(method, read(path))
