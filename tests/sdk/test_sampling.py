"""Tests of sampling requests and of their answers."""

from typing import Any, Literal

import pytest
from mcp_types import (
    CreateMessageResult,
    CreateMessageResultWithTools,
    ModelHint,
    ModelPreferences,
    SamplingMessage,
    TextContent,
    Tool,
    ToolChoice,
    ToolResultContent,
    ToolUseContent,
)

from mcphost.runtime.questions import QuestionRefusedError
from mcphost.sdk import Message
from mcphost.sdk.content import ResourceLink
from mcphost.sdk.questions import sampling
from tests.sdk.question_checks import invalid, on_the_wire

# --- sampling ---

SAID = {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"}
WEATHER = Tool(name="weather", input_schema={"type": "object", "properties": {}})


def test_a_text_becomes_a_user_message() -> None:
    question = sampling("capital", "What is the capital of France?", max_tokens=100)
    content = {"type": "text", "text": "What is the capital of France?"}
    assert on_the_wire(question) == {
        "messages": [{"role": "user", "content": content}],
        "maxTokens": 100,
    }
    assert question.capability == "sampling"


@pytest.mark.requirement("sampling.tools")
def test_sampling_options_have_the_protocols_names_and_are_sent_only_if_set() -> None:
    question = sampling(
        "talk",
        Message("Hi"),
        max_tokens=5,
        system_prompt="Be brief.",
        temperature=0,
        stop_sequences=("\n",),
        tools=[WEATHER],
        tool_choice=ToolChoice(mode="required"),
        model_preferences=ModelPreferences(hints=[ModelHint(name="small")], cost_priority=1),
        metadata={"trace": "on"},
    )
    params = on_the_wire(question)
    assert set(params) == {
        *("messages", "maxTokens", "systemPrompt", "temperature", "stopSequences"),
        *("tools", "toolChoice", "modelPreferences", "metadata"),
    }
    assert params["tools"] == [
        {"name": "weather", "inputSchema": {"type": "object", "properties": {}}}
    ]
    assert (params["temperature"], params["metadata"]) == (0, {"trace": "on"})
    assert question.capability == "sampling.tools"
    nothing = sampling(
        "talk", "Hi", max_tokens=5, system_prompt="", temperature=None, tools=(), metadata=None
    )
    assert set(on_the_wire(nothing)) == {"messages", "maxTokens"}


def uses(*ids: str) -> SamplingMessage:
    content = [ToolUseContent(type="tool_use", id=i, name="weather", input={}) for i in ids]
    return SamplingMessage(role="assistant", content=[*content])


def results(*ids: str, role: Literal["user", "assistant"] = "user") -> SamplingMessage:
    text = TextContent(type="text", text="18 degrees")
    content = [ToolResultContent(type="tool_result", tool_use_id=i, content=[text]) for i in ids]
    return SamplingMessage(role=role, content=[*content])


def test_tool_use_in_sampling_is_sent_with_its_results() -> None:
    said = ["Weather?", uses("1", "2"), results("2", "1"), uses("3"), results("3")]
    question = sampling("talk", said, max_tokens=5)
    on_the_wire(question)
    assert question.capability == "sampling.tools"
    assert isinstance(question.read(SAID), CreateMessageResultWithTools)


@pytest.mark.requirement("sampling.tool-results")
@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([], "there is no message"),
        ([5], "a sampling message must be text, image or audio"),
        (
            [Message(ResourceLink(type="resource_link", name="a", uri="a:b"))],
            "a sampling message must be text, image or audio",
        ),
        ([uses("1")], "their results are missing"),
        ([uses("1"), "And?"], "must be followed by its result"),
        (["Hi", results("1")], "must be followed by its result"),
        ([uses("1"), results("1", role="assistant")], "is the user's"),
        (
            [
                uses("1"),
                SamplingMessage(
                    role="user",
                    content=[
                        TextContent(type="text", text="Here:"),
                        *results("1").content_as_list,
                    ],
                ),
            ],
            "holds nothing else",
        ),
        (
            [SamplingMessage(role="user", content=uses("1").content), results("1")],
            "used by the assistant",
        ),
    ],
)
def test_invalid_sampling_messages_are_refused(messages: Any, why: str) -> None:
    with pytest.raises(QuestionRefusedError, match=why):
        sampling("talk", messages, max_tokens=5)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"max_tokens": 0}, "max_tokens must be"),
        ({"temperature": "hot"}, "temperature must be a number"),
        ({"stop_sequences": "END"}, "stop_sequences is a list"),
        ({"tools": [WEATHER, WEATHER]}, "two tools have the same name"),
        ({"tool_choice": ToolChoice(mode="auto")}, "there is no tool to choose"),
        ({"metadata": {"a": object()}}, "is not JSON"),
        ({"include_context": "allServers"}, "it has no option 'include_context'"),
    ],
)
def test_invalid_sampling_options_are_refused(options: Any, why: str) -> None:
    with pytest.raises(QuestionRefusedError, match=why):
        sampling("talk", "Hi", **{"max_tokens": 5, **options})


def test_without_tools_a_single_content_is_read_in_either_form() -> None:
    question = sampling("capital", "Capital?", max_tokens=5)
    answer = question.read({**SAID, "stopReason": "endTurn"})
    assert isinstance(answer, CreateMessageResult)
    assert answer.content == TextContent(type="text", text="Paris")
    assert (answer.model, answer.stop_reason) == ("m", "endTurn")
    block = SAID["content"]
    assert question.read({**SAID, "content": [block]}).content == answer.content
    both = question.read({**SAID, "content": [block, {"type": "text", "text": "!"}]})
    assert both.content == TextContent(type="text", text="Paris!")


def test_with_tools_the_sampling_result_may_contain_tool_use() -> None:
    question = sampling("talk", "Weather?", max_tokens=5, tools=[WEATHER])
    content = [{"type": "tool_use", "id": "1", "name": "weather", "input": {"city": None}}]
    answer = question.read({**SAID, "content": content, "stopReason": "toolUse"})
    assert isinstance(answer, CreateMessageResultWithTools)
    assert answer.content_as_list == [
        ToolUseContent(type="tool_use", id="1", name="weather", input={"city": None})
    ]
    assert isinstance(question.read(SAID), CreateMessageResultWithTools)


@pytest.mark.parametrize(
    ("result", "why"),
    [
        ({}, "is missing"),
        ({**SAID, "model": 5}, "its model is not valid"),
        ({**SAID, "content": "Paris"}, "its content is not valid"),
        ({**SAID, "content": {"type": "text", "text": 5}}, "its content is not valid"),
        ({**SAID, "content": []}, "its content must be one text, image or audio"),
        (
            {**SAID, "content": {"type": "tool_use", "id": "1", "name": "a", "input": {}}},
            "its content is not valid",
        ),
        ({**SAID, "model": "\ud800"}, "is not JSON"),
    ],
)
def test_invalid_sampling_results_are_refused(result: Any, why: str) -> None:
    assert why in invalid(sampling("capital", "Capital?", max_tokens=5), result)
