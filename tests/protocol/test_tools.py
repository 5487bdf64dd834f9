"""Tests of the descriptions of tools."""

import pytest

from mcphost.protocol.messages import response
from mcphost.protocol.results import cacheable, complete
from mcphost.protocol.tools import MAX_NAME, ToolListing, check_tool_name, describe_tool
from tests.wire import check_response

SCHEMA = {"type": "object", "additionalProperties": False}


@pytest.mark.requirement("tools.names")
@pytest.mark.parametrize("name", ["a", "getUser", "DATA_EXPORT_v2", "admin.tools-list", "x" * 64])
def test_a_tool_name_consists_of_letters_digits_and_three_punctuation_characters(name):
    assert check_tool_name(name) is None


@pytest.mark.requirement("tools.names")
@pytest.mark.parametrize(
    "name", ["", "x" * (MAX_NAME + 1), "a b", "a/b", "a,b", "é", "a\n", "٣", "a:b"]
)
def test_an_invalid_tool_name_is_refused_with_the_rule(name):
    assert "1 to 64" in (check_tool_name(name) or "")


def test_a_tool_listing_has_the_fields_of_the_specification():
    assert describe_tool(ToolListing("echo", SCHEMA)) == {"name": "echo", "inputSchema": SCHEMA}
    listing = ToolListing(
        name="echo",
        input_schema=SCHEMA,
        title="Echo",
        description="Says it again",
        output_schema={"type": "string"},
        annotations={"readOnlyHint": True},
        icons=({"src": "https://example.com/a.png"},),
    )
    tool = describe_tool(listing)
    assert tool == {
        "name": "echo",
        "title": "Echo",
        "description": "Says it again",
        "inputSchema": SCHEMA,
        "outputSchema": {"type": "string"},
        "annotations": {"readOnlyHint": True},
        "icons": [{"src": "https://example.com/a.png"}],
    }
    server = {"name": "mcphost", "version": "1"}
    result = cacheable(complete({"tools": [tool]}, server), 0, "private")
    check_response("tools/list", response(1, result))
