"""The specification's examples of input requests can be sent, and its examples of responses read."""

from pathlib import Path
from typing import Any

import orjson
import pytest
from mcp_types import SamplingMessage, Tool

from mcphost.sdk.questions import form, roots, sampling, url
from tests.sdk.question_checks import on_the_wire
from tests.wire import SPEC

EXAMPLES = SPEC / "examples-2026-07-28"


def of(*names: str) -> list[Path]:
    found = [path for name in names for path in sorted((EXAMPLES / name).glob("*.json"))]
    assert found
    return found


def read(path: Path) -> dict[str, Any]:
    example: dict[str, Any] = orjson.loads(path.read_bytes())
    return example


@pytest.mark.parametrize("path", of("ElicitRequestFormParams"), ids=lambda path: path.stem)
def test_every_example_form_can_be_requested(path: Path) -> None:
    example = read(path)
    question = form("form", example["message"], example["requestedSchema"])
    assert on_the_wire(question) == {"mode": "form", **example}


FIELDS = of(
    *("StringSchema", "NumberSchema", "BooleanSchema"),
    *("TitledSingleSelectEnumSchema", "UntitledSingleSelectEnumSchema"),
    *("TitledMultiSelectEnumSchema", "UntitledMultiSelectEnumSchema"),
)


@pytest.mark.parametrize("path", FIELDS, ids=lambda path: path.stem)
def test_every_example_field_can_be_requested_and_accepts_its_default(path: Path) -> None:
    field = read(path)
    question = form("form", "What?", {"type": "object", "properties": {"field": field}})
    on_the_wire(question)
    content = {"field": field["default"]}
    assert question.read({"action": "accept", "content": content}).content == content


@pytest.mark.parametrize("path", of("ElicitRequestURLParams"), ids=lambda path: path.stem)
def test_every_example_url_can_be_requested(path: Path) -> None:
    example = read(path)
    assert on_the_wire(url("page", example["message"], example["url"])) == example


@pytest.mark.parametrize("path", of("ElicitResult"), ids=lambda path: path.stem)
def test_every_example_elicitation_result_can_be_read(path: Path) -> None:
    example = read(path)
    schema = {
        "type": "object",
        "properties": {"on": {"type": "boolean"}},
        "additionalProperties": True,
    }
    assert form("form", "What?", schema).read(example).content == example.get("content", {})
    assert url("page", "Look", "https://example.com").read(example).accepted


@pytest.mark.parametrize("path", of("CreateMessageRequestParams"), ids=lambda path: path.stem)
def test_every_example_sampling_request_can_be_sent(path: Path) -> None:
    example = read(path)
    question = sampling(
        "talk",
        [SamplingMessage.model_validate(one) for one in example["messages"]],
        max_tokens=example["maxTokens"],
        tools=[Tool.model_validate(one) for one in example.get("tools", ())],
    )
    said = on_the_wire(question)
    assert said == {name: example[name] for name in said}


@pytest.mark.parametrize("path", of("CreateMessageResult"), ids=lambda path: path.stem)
def test_every_example_sampling_result_can_be_read(path: Path) -> None:
    example = read(path)
    tools = [Tool(name="get_weather", input_schema={"type": "object"})]
    said = sampling("talk", "Hi", max_tokens=1, tools=tools).read(example)
    written = said.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert {name: written[name] for name in example} == example


@pytest.mark.parametrize("path", of("ListRootsResult"), ids=lambda path: path.stem)
def test_every_example_roots_result_can_be_read(path: Path) -> None:
    example = read(path)
    found = [{"uri": str(root.uri), "name": root.name} for root in roots().read(example)]
    assert found == example["roots"]
