"""Tests of the limits on nesting, and of references that would escape the checks of schemas."""

from typing import Any

import orjson
import pytest

from mcphost.kinds.http.replies import MAX_DEPTH as MAX_REPLY_DEPTH
from mcphost.kinds.http.replies import BadReplyError, Response
from mcphost.protocol.errors import ProtocolError
from mcphost.protocol.nesting import MAX_DEPTH, check_depth, is_deeper
from mcphost.protocol.schemas import check_schema
from mcphost.protocol.subschemas import Document, walk


def nested(levels: int) -> Any:
    """Return so many lists in each other."""
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize("padding", ["", "x" * 2000])
def test_the_array_of_a_batch_does_not_count_as_a_level_of_its_messages(padding: str) -> None:
    batch = [{"params": nested(MAX_DEPTH - 1), "padding": padding}]
    check_depth(batch, orjson.dumps(batch))
    batch = [{"params": nested(MAX_DEPTH), "padding": padding}]
    with pytest.raises(ProtocolError, match="nested deeper than"):
        check_depth(batch, orjson.dumps(batch))


def test_a_value_is_too_deep_if_it_has_content_below_the_last_level() -> None:
    for levels in (1, 5, 200):
        assert not is_deeper(nested(levels), levels)
        assert is_deeper(nested(levels + 2), levels)


def test_the_response_of_a_service_has_a_limited_depth() -> None:
    def response(levels: int) -> Response:
        body = b"[" * levels + b"]" * levels
        return Response(200, "application/json", "utf-8", body, "https://api.example.com")

    assert response(MAX_REPLY_DEPTH).json == nested(MAX_REPLY_DEPTH)
    with pytest.raises(BadReplyError):
        _ = response(MAX_REPLY_DEPTH + 2).json


def test_a_cycle_of_references_is_detected_behind_escaped_pointers() -> None:
    schema = {"type": "object", "$defs": {"a/b~c": {"allOf": [{"$ref": "#/$defs/a~1b~0c"}]}}}
    assert Document(list(walk(schema))).find("#/$defs/a~1b~0c") == ("$defs", "a/b~c")
    (problem,) = check_schema(schema, role="input")
    assert "itself" in problem.message
