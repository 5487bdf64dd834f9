"""The demo's tools, prompts and resources do what they say, and are short enough to learn from."""

import ast
import json
import re
from typing import Any

import pytest

from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.protocol.uri_templates import UriTemplate
from mcphost.runtime.outcomes import Complete, Failed, FailureKind
from tests.kinds.rounds import Notes
from tests.tools.shipped_tools import (
    FOLDER,
    assert_listable,
    call,
    compiled,
    kind,
    names,
    read,
    suggested,
)

ALL = [
    "demo.add",
    "demo.countdown",
    "demo.echo",
    "demo.picture",
    "demo.send_note",
    "demo.slow_report",
    "demo.weather",
]
PROMPTS = ["demo.plan_trip", "demo.weather_report"]
RESOURCES = ["demo.about", "demo.square", "demo.weather_of"]


async def done(reference: str, notes: Notes | None = None, **arguments: Any) -> Any:
    outcome = await call(reference, arguments, notes)
    assert isinstance(outcome, Complete), outcome
    return outcome.result


def test_all_files_in_the_tools_folder_are_valid() -> None:
    assert kind().check() == ()


def test_the_demo_has_the_expected_tools_prompts_and_resources() -> None:
    assert names("demo", PrimitiveType.TOOL) == ALL
    assert names("demo", PrimitiveType.PROMPT) == PROMPTS
    assert names("demo", PrimitiveType.RESOURCE, PrimitiveType.TEMPLATE) == RESOURCES


@pytest.mark.parametrize("reference", names("demo"))
def test_every_demo_function_is_listable_and_has_a_title(reference: str) -> None:
    assert_listable(compiled(reference))
    assert compiled(reference).title


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.py")), ids=lambda file: file.name)
def test_tools_import_only_the_sdk_the_standard_library_and_pydantic(file: Any) -> None:
    import_nodes = [
        node
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    for node in import_nodes:
        modules = (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
        )
        for module in modules:
            assert not module.startswith("mcphost") or module == "mcphost.sdk"


async def test_echo_returns_its_text() -> None:
    assert compiled("demo.echo").input_schema["properties"] == {"text": {"type": "string"}}
    assert await done("demo.echo", text="héllo") == {"content": [{"type": "text", "text": "héllo"}]}


async def test_add_returns_a_number() -> None:
    assert (await done("demo.add", a=1, b=2.5))["structuredContent"] == 3.5
    refused = await call("demo.add", {"a": "1", "b": 2})
    assert isinstance(refused, Failed)
    assert refused.error.kind is FailureKind.INVALID_ARGUMENTS


async def test_countdown_reports_its_progress() -> None:
    notes = Notes()
    result = await done("demo.countdown", notes, start=3, seconds=0)
    assert result["content"][0]["text"] == "Lift-off!"
    assert notes.progressed == [
        (0, 3, "3…"),
        (1, 3, "2…"),
        (2, 3, "1…"),
        (3, 3, "Lift-off!"),
    ]
    assert notes.logged == [("info", "counting down from 3", None)]


async def test_the_weather_of_a_city_is_always_the_same() -> None:
    first, again = [await done("demo.weather", city=city) for city in ("Oslo", " oslo")]
    assert first["structuredContent"]["city"] == "Oslo"
    assert {**first["structuredContent"], "city": ""} == {**again["structuredContent"], "city": ""}


async def test_the_weather_of_a_city_without_weather_is_a_tool_error() -> None:
    result = await done("demo.weather", city="Atlantis")
    assert result["isError"] is True
    assert result["content"][0]["text"] == "Atlantis has no weather: it is under water."


async def test_a_slow_report_reports_its_progress_from_its_thread() -> None:
    notes = Notes()
    result = await done("demo.slow_report", notes, title="All", sections=2, seconds=0)
    assert result["structuredContent"] == {
        "title": "All",
        "lines": ["Section 1 of 2: all is well.", "Section 2 of 2: all is well."],
    }
    assert notes.progressed == [(1, 2, None), (2, 2, None)]


async def test_sending_a_note_returns_a_receipt_and_does_not_log_the_text() -> None:
    notes = Notes()
    result = await done("demo.send_note", notes, recipient="Ada", note="secret words")
    assert result["structuredContent"]["recipient"] == "Ada"
    assert result["structuredContent"]["characters"] == 12
    assert notes.logged == [("info", {"recipient": "Ada", "characters": 12}, "demo.send_note")]


async def test_the_trip_prompt_is_a_conversation_of_text_messages_only() -> None:
    asked = {"city": "São Paulo", "days": "3", "style": "busy"}
    outcome = await read("demo.plan_trip", asked)
    assert isinstance(outcome, Complete)
    messages = outcome.result["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert messages[0]["content"]["text"] == "Plan 3 busy days in São Paulo for me."
    assert {message["content"]["type"] for message in messages} == {"text"}


async def test_the_report_prompt_links_to_a_readable_resource() -> None:
    outcome = await read("demo.weather_report", {"city": "São Paulo"})
    assert isinstance(outcome, Complete)
    messages = outcome.result["messages"]
    assert [message["content"]["type"] for message in messages] == ["text", "resource_link"]
    values = UriTemplate(compiled("demo.weather_of").uri).match(messages[1]["content"]["uri"])
    assert values == {"city": "São Paulo"}


async def test_styles_of_travel_are_suggested_and_any_other_style_is_refused() -> None:
    assert await suggested("demo.plan_trip", "style", "b") == ["busy", "on a budget"]
    outcome = await read("demo.plan_trip", {"city": "Oslo", "style": "by rocket"})
    assert isinstance(outcome, Failed)
    assert outcome.error.kind is FailureKind.INVALID_ARGUMENTS


@pytest.mark.parametrize("reference", ["demo.plan_trip", "demo.weather_of"])
async def test_cities_are_suggested_as_they_are_typed(reference: str) -> None:
    assert await suggested(reference, "city", "be") == ["Berlin", "Bern"]
    assert await suggested(reference, "city", "x") == []


async def test_the_about_resource_names_only_existing_functions() -> None:
    outcome = await read("demo.about", uri="demo://about")
    assert isinstance(outcome, Complete)
    [contents] = outcome.result["contents"]
    assert (contents["uri"], contents["mimeType"]) == ("demo://about", "text/markdown")
    named = set(re.findall(r"`(\w+)`", contents["text"]))
    assert named
    everything = [*names("demo"), *names("demo_asking")]
    assert named <= {compiled(reference).name for reference in everything}


async def test_the_weather_of_a_city_can_be_read_at_its_uri() -> None:
    assert compiled("demo.weather_of").uri == "demo://weather/{city}"
    outcome = await read("demo.weather_of", {"city": "Oslo"}, "demo://weather/Oslo")
    assert isinstance(outcome, Complete)
    [contents] = outcome.result["contents"]
    assert (contents["uri"], contents["mimeType"]) == ("demo://weather/Oslo", "application/json")
    called = await done("demo.weather", city="Oslo")
    assert json.loads(contents["text"]) == called["structuredContent"]
