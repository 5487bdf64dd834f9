"""The demo's tools do what they say, and are short enough to learn from."""

import ast
import asyncio
import base64
import struct
import zlib
from typing import Any

import pytest

from mcphost.kinds.sorts import Sort
from mcphost.runtime.journal import EMPTY
from mcphost.runtime.outcomes import Complete
from tests.kinds.rounds import Notes, a_call, ports
from tests.tools.shelf import FOLDER, assert_listable, call, compiled, kind, names

TOOLS = [
    "demo.add",
    "demo.countdown",
    "demo.echo",
    "demo.picture",
    "demo.send_note",
    "demo.slow_report",
    "demo.weather",
]


async def done(reference: str, notes: Notes | None = None, **arguments: Any) -> Any:
    outcome = await call(reference, arguments, notes)
    assert isinstance(outcome, Complete), outcome
    return outcome.result


def test_nothing_in_the_folder_is_broken() -> None:
    assert kind().check() == ()


OTHERS = {
    "demo.plan_trip": Sort.PROMPT,
    "demo.about": Sort.RESOURCE,
    "demo.square": Sort.RESOURCE,
    "demo.weather_of": Sort.TEMPLATE,
}


def test_the_demo_has_these() -> None:
    assert names("demo") == sorted([*TOOLS, *OTHERS])


@pytest.mark.parametrize(("reference", "sort"), OTHERS.items())
def test_prompts_and_resources_say_what_they_are(reference: str, sort: Sort) -> None:
    said = compiled(reference)
    assert said.sort is sort
    assert said.title
    assert said.description


async def test_a_trip_is_planned_with_the_weather_in_mind() -> None:
    messages = (await done("demo.plan_trip", city="Oslo", days="2", style="busy"))["messages"]
    assert messages[0]["content"]["text"] == "Plan 2 busy days in Oslo for me."
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]


@pytest.mark.parametrize("reference", ["demo.plan_trip", "demo.weather_of"])
async def test_cities_are_suggested(reference: str) -> None:
    completer = compiled(reference).completer
    assert completer is not None
    asked = {"argument": {"name": "city", "value": "be"}, "context": {"arguments": {}}}
    outcome = await completer.advance(a_call(asked), EMPTY, ports())
    assert isinstance(outcome, Complete)
    assert outcome.result["completion"]["values"] == ["Berlin", "Bern"]


async def test_the_resources_of_the_demo_can_be_read() -> None:
    (about,) = (await done("demo.about"))["contents"]
    assert about["text"].startswith("# The demo tenant")
    (square,) = (await done("demo.square"))["contents"]
    assert base64.b64decode(square["blob"]).startswith(b"\x89PNG")
    (sky,) = (await done("demo.weather_of", city="Oslo"))["contents"]
    assert (sky["mimeType"], '"city":"Oslo"' in sky["text"]) == ("application/json", True)


@pytest.mark.parametrize("reference", TOOLS)
def test_every_tool_can_be_listed_and_has_a_title(reference: str) -> None:
    assert_listable(compiled(reference))
    assert compiled(reference).title


@pytest.mark.parametrize("reference", TOOLS)
def test_only_sending_a_note_is_not_read_only(reference: str) -> None:
    read_only = compiled(reference).annotations.get("readOnlyHint") is True
    assert read_only is (reference != "demo.send_note")


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
    assert (await done("demo.add", a="1", b=2))["isError"] is True


async def test_countdown_tells_how_far_it_is() -> None:
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


async def test_countdown_can_be_stopped() -> None:
    counting = asyncio.create_task(call("demo.countdown", {"start": 60, "seconds": 2}))
    await asyncio.sleep(0)
    counting.cancel()
    await asyncio.wait([counting])
    assert counting.cancelled()


async def test_the_weather_of_a_city_is_always_the_same() -> None:
    first, again = [await done("demo.weather", city=city) for city in ("Oslo", " oslo")]
    assert first["structuredContent"]["city"] == "Oslo"
    assert {**first["structuredContent"], "city": ""} == {**again["structuredContent"], "city": ""}


async def test_the_weather_fits_its_schema_wherever_it_is() -> None:
    seen = set()
    for number in range(60):
        weather = (await done("demo.weather", city=f"City {number}"))["structuredContent"]
        assert weather["conditions"] != "snow" or weather["temperature"] < 1
        seen.add(weather["conditions"])
    assert seen == {"sunny", "cloudy", "rain", "snow"}


async def test_where_there_is_no_weather_the_tool_says_so() -> None:
    result = await done("demo.weather", city="Atlantis")
    assert result["isError"] is True
    assert result["content"][0]["text"] == "Atlantis has no weather: it is under water."


async def test_a_picture_is_a_text_and_a_png() -> None:
    text, image = (await done("demo.picture", red=1, green=2, blue=3))["content"]
    assert text["text"] == "A square in #010203"
    assert image["mimeType"] == "image/png"
    png = base64.b64decode(image["data"], validate=True)
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", png[16:24]) == (64, 64)
    assert zlib.decompress(_chunks(png)[b"IDAT"]) == (b"\0" + b"\1\2\3" * 64) * 64


def _chunks(png: bytes) -> dict[bytes, bytes]:
    """The parts of a PNG by kind, each with a right checksum."""
    parts, at = {}, 8
    while at < len(png):
        [size] = struct.unpack(">I", png[at : at + 4])
        kind, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        assert struct.unpack(">I", png[at + 8 + size : at + 12 + size]) == (
            zlib.crc32(kind + data),
        )
        parts[kind], at = data, at + 12 + size
    return parts


async def test_a_slow_report_reports_its_progress_from_its_thread() -> None:
    notes = Notes()
    result = await done("demo.slow_report", notes, title="All", sections=2, seconds=0)
    assert result["structuredContent"] == {
        "title": "All",
        "lines": ["Section 1 of 2: all is well.", "Section 2 of 2: all is well."],
    }
    assert notes.progressed == [(1, 2, None), (2, 2, None)]


async def test_a_note_gets_a_receipt_and_its_words_are_not_logged() -> None:
    notes = Notes()
    result = await done("demo.send_note", notes, recipient="Ada", note="secret words")
    assert result["structuredContent"]["recipient"] == "Ada"
    assert result["structuredContent"]["characters"] == 12
    assert notes.logged == [("info", {"recipient": "Ada", "characters": 12}, "demo.send_note")]
