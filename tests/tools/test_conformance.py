"""The tools of the conformance suite return exactly what the suite expects."""

import re
from typing import Any

import pytest

from mcphost.protocol.schemas import param_headers
from mcphost.runtime.outcomes import Complete, Failed, FailureKind
from mcphost.testing import a_call, accept, in_memory, run_through
from tests.kinds.rounds import Notes
from tests.tools.shipped_tools import assert_listable, call, compiled, names


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


async def content(name: str, notes: Notes | None = None, /, **arguments: Any) -> Any:
    outcome = await call(f"conformance.{name}", arguments, notes)
    assert isinstance(outcome, Complete), outcome
    return outcome.result["content"]


@pytest.mark.parametrize("reference", names("conformance"))
def test_every_tool_is_listable_under_its_name(reference: str) -> None:
    assert_listable(compiled(reference))
    assert re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", compiled(reference).name)


async def test_the_reconnection_tool_closes_its_stream_before_its_result() -> None:
    ended: list[str] = []
    program = compiled("conformance.test_reconnection").program
    outside = in_memory()._replace(close_stream=lambda: ended.append("stream"))
    assert (await run_through(program, a_call(), {}, outside)).text == "Reconnected."
    assert ended == ["stream"]


async def test_the_streaming_tool_reports_progress_and_requests_input() -> None:
    notes = Notes()
    program = compiled("conformance.test_streaming_elicitation").program
    outside = in_memory()._replace(notifier=notes)
    ended = await run_through(program, a_call(), {"user_name": accept(name="Ada")}, outside)
    assert ended.asked == (("user_name",),)
    assert ended.text == "Hello, Ada!"
    assert len(notes.progressed) == 1


async def test_a_client_without_sampling_gets_the_missing_capability() -> None:
    outcome = await call("conformance.test_missing_capability")
    assert isinstance(outcome, Failed)
    assert outcome.error.kind is FailureKind.CAPABILITY_MISSING
    assert outcome.error.required == {"sampling": {}}


async def test_the_region_is_mirrored_into_a_header_and_returned() -> None:
    schema = compiled("conformance.test_x_mcp_header").input_schema
    assert schema == {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
        "required": ["region"],
    }
    [header] = param_headers(schema)
    assert (header.path, header.name, header.kind) == (("region",), "Region", "string")
    assert await content("test_x_mcp_header", region="Hello") == [text("Hello")]


async def test_the_2020_12_schema_is_served_verbatim_and_arguments_are_validated_by_it() -> None:
    schema = compiled("conformance.json_schema_2020_12_tool").input_schema
    keywords = "$schema type $defs properties allOf if then else additionalProperties"
    assert " ".join(schema) == keywords
    assert schema["$defs"]["address"]["$anchor"] == "addressDef"
    good = {"contactMethod": "phone", "phone": "1", "address": {"city": "Oslo"}}
    assert await content("json_schema_2020_12_tool", **good)
    for bad in ({}, {"contactMethod": "phone", "email": "a"}, {"phone": "1"}, {**good, "x": 1}):
        outcome = await call("conformance.json_schema_2020_12_tool", bad)
        assert isinstance(outcome, Failed)
        assert outcome.error.kind is FailureKind.INVALID_ARGUMENTS
