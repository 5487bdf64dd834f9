"""What the conformance suite expects, to the letter."""

import base64
import re
from typing import Any

import pytest

from mcphost.protocol.schemas import param_headers
from mcphost.protocol.uri_templates import UriTemplate
from mcphost.runtime.outcomes import Complete, Failed, FailureKind
from mcphost.testing import a_call, accept, in_memory, run_through
from tests.kinds.rounds import Notes
from tests.tools.shelf import assert_listable, call, compiled, names, read

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def embedded(uri: str, mime_type: str, words: str) -> dict[str, Any]:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": words}}


IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
AUDIO = {"type": "audio", "data": WAV, "mimeType": "audio/wav"}
PLAIN = "text/plain"
ANSWERS: dict[str, list[dict[str, Any]]] = {
    "greet": [text("Hello, world!")],
    "test_simple_text": [text("This is a simple text response for testing.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [AUDIO],
    "test_embedded_resource": [
        embedded("test://embedded-resource", PLAIN, "This is an embedded resource content.")
    ],
    "test_multiple_content_types": [
        text("Multiple content types test:"),
        IMAGE,
        embedded(
            "test://mixed-content-resource", "application/json", '{"test":"data","value":123}'
        ),
    ],
}
RESOURCE = "test://example-resource"
MESSAGES: dict[str, tuple[dict[str, str], list[dict[str, Any]]]] = {
    "test_simple_prompt": ({}, [text("This is a simple prompt for testing.")]),
    "test_prompt_with_arguments": (
        {"arg1": "testValue1", "arg2": "testValue2"},
        [text("Prompt with arguments: arg1='testValue1', arg2='testValue2'")],
    ),
    "test_prompt_with_embedded_resource": (
        {"resourceUri": RESOURCE},
        [
            embedded(RESOURCE, PLAIN, "Embedded resource content for testing."),
            text("Please process the embedded resource above."),
        ],
    ),
    "test_prompt_with_image": ({}, [IMAGE, text("Please analyze the image above.")]),
}
CONTENTS: dict[str, dict[str, str]] = {
    "static_text": {
        "uri": "test://static-text",
        "mimeType": PLAIN,
        "text": "This is the content of the static text resource.",
    },
    "static_binary": {"uri": "test://static-binary", "mimeType": "image/png", "blob": PNG},
    "watched_resource": {
        "uri": "test://watched-resource",
        "mimeType": PLAIN,
        "text": "This is the content of the watched resource.",
    },
}


async def content(name: str, notes: Notes | None = None, /, **arguments: Any) -> Any:
    outcome = await call(f"conformance.{name}", arguments, notes)
    assert isinstance(outcome, Complete), outcome
    return outcome.result["content"]


@pytest.mark.parametrize("name", ANSWERS)
async def test_the_answer_is_the_suites_to_the_letter(name: str) -> None:
    assert await content(name) == ANSWERS[name]
    outcome = await call(f"conformance.{name}")
    assert isinstance(outcome, Complete)
    assert set(outcome.result) == {"content"}


@pytest.mark.parametrize("data", [PNG, WAV])
def test_pictures_and_sounds_are_base64(data: str) -> None:
    assert base64.b64decode(data, validate=True)


@pytest.mark.parametrize("reference", names("conformance"))
def test_every_tool_can_be_listed_under_its_name(reference: str) -> None:
    assert_listable(compiled(reference))
    assert re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", compiled(reference).name)


async def test_greet_greets_whom_it_is_told_to() -> None:
    assert await content("greet", name="Ada") == [text("Hello, Ada!")]


async def test_the_error_is_a_result() -> None:
    outcome = await call("conformance.test_error_handling")
    said = text("This tool intentionally returns an error for testing")
    assert outcome == Complete({"content": [said], "isError": True})


async def test_progress_goes_from_nothing_over_half_to_all() -> None:
    notes = Notes()
    await content("test_tool_with_progress", notes)
    assert notes.progressed == [(0, 100, None), (50, 100, None), (100, 100, None)]


async def test_a_stream_ends_before_its_result() -> None:
    ended: list[str] = []
    program = compiled("conformance.test_reconnection").program
    outside = in_memory()._replace(close_stream=lambda: ended.append("stream"))
    assert (await run_through(program, a_call(), {}, outside)).text == "Reconnected."
    assert ended == ["stream"]


async def test_three_messages_are_logged() -> None:
    notes = Notes()
    await content("test_tool_with_logging", notes)
    assert notes.logged == [
        ("info", "Tool execution started", None),
        ("info", "Tool processing data", None),
        ("info", "Tool execution completed", None),
    ]


async def test_the_logging_diagnostic_logs() -> None:
    notes = Notes()
    await content("test_logging_tool", notes)
    assert len(notes.logged) == 1


async def test_the_streaming_diagnostic_asks_by_its_result() -> None:
    notes = Notes()
    program = compiled("conformance.test_streaming_elicitation").program
    outside = in_memory()._replace(notifier=notes)
    ended = await run_through(program, a_call(), {"user_name": accept(name="Ada")}, outside)
    assert ended.asked == (("user_name",),)
    assert ended.text == "Hello, Ada!"
    assert len(notes.progressed) == 1


async def test_a_client_that_cannot_sample_is_told_what_is_missing() -> None:
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


async def test_the_schema_of_2020_12_is_served_verbatim_and_held_against_arguments() -> None:
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


@pytest.mark.parametrize("name", MESSAGES)
async def test_the_prompt_is_the_suites_to_the_letter(name: str) -> None:
    arguments, wanted = MESSAGES[name]
    prompt = compiled(f"conformance.{name}")
    assert [argument.name for argument in prompt.arguments] == list(arguments)
    assert all(argument.required for argument in prompt.arguments)
    assert await read(f"conformance.{name}", arguments) == Complete(
        {"messages": [{"role": "user", "content": block} for block in wanted]}
    )


@pytest.mark.parametrize("name", CONTENTS)
async def test_the_resource_is_the_suites_to_the_letter(name: str) -> None:
    resource = compiled(f"conformance.{name}")
    wanted = CONTENTS[name]
    assert (resource.uri, resource.mime_type) == (wanted["uri"], wanted["mimeType"])
    outcome = await read(f"conformance.{name}", uri=wanted["uri"])
    assert outcome == Complete({"contents": [wanted]})


async def test_the_template_is_the_suites_to_the_letter() -> None:
    uri = "test://template/123/data"
    values = UriTemplate(compiled("conformance.template_data").uri).match(uri)
    assert values == {"id": "123"}
    words = '{"id":"123","templateTest":true,"data":"Data for ID: 123"}'
    contents = [{"uri": uri, "mimeType": "application/json", "text": words}]
    assert await read("conformance.template_data", values, uri) == Complete({"contents": contents})
