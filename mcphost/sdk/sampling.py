"""Questions to the client's model (spec: client/sampling; deprecated there)."""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, Final, TypedDict, Unpack

from mcp_types import (
    AudioContent,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ImageContent,
    ModelPreferences,
    SamplingMessage,
    TextContent,
    Tool,
    ToolChoice,
    ToolResultContent,
    ToolUseContent,
)
from pydantic import BaseModel

from mcphost.runtime.questions import InvalidAnswerError, Question, QuestionRefusedError
from mcphost.sdk.content import Message
from mcphost.sdk.wire import read_as

Sampled = CreateMessageResult | CreateMessageResultWithTools
MessageLike = str | Message | SamplingMessage

_METHOD: Final = "sampling/createMessage"
_WORK: Final = (ToolUseContent, ToolResultContent)


class SamplingOptions(TypedDict, total=False):
    """The options of a sampling request besides the messages.

    `tools` are for this request only; the model answers with `tool_use`, the author runs the tools
    and asks again with the results. `tool_choice`: whether the model must, may or must not use
    them.
    """

    system_prompt: str
    temperature: float | None
    stop_sequences: Sequence[str]
    tools: Sequence[Tool]
    tool_choice: ToolChoice | None
    model_preferences: ModelPreferences | None
    metadata: Mapping[str, Any] | None


def sampling(
    key: str,
    messages: MessageLike | Sequence[MessageLike],
    *,
    max_tokens: int,
    **options: Unpack[SamplingOptions],
) -> Question[Sampled]:
    """Build a question to the client's model: a string, or messages of user and assistant.

    Without tools the answer is a CreateMessageResult. With tools, or with messages about their use,
    it is a CreateMessageResultWithTools, whose content may be a list. Raises QuestionRefusedError.
    """
    if isinstance(messages, str) or not isinstance(messages, Sequence):
        messages = [messages]
    sampling_messages = [_message(message) for message in messages]
    problem = next(_problems(sampling_messages, max_tokens, options), None)
    if problem is not None:
        raise QuestionRefusedError(f"the question {key!r} cannot be asked: {problem}")
    fields = {
        "messages": [_as_json(message) for message in sampling_messages],
        "maxTokens": max_tokens,
        "systemPrompt": options.get("system_prompt") or None,
        "temperature": options.get("temperature"),
        "stopSequences": list(options.get("stop_sequences", ())) or None,
        "tools": [_as_json(tool) for tool in options.get("tools", ())] or None,
        "toolChoice": _as_json(options.get("tool_choice")),
        "modelPreferences": _as_json(options.get("model_preferences")),
        "metadata": dict(options.get("metadata") or {}) or None,
    }
    params = {name: value for name, value in fields.items() if value is not None}
    if options.get("tools") or any(
        isinstance(b, _WORK) for m in sampling_messages for b in m.content_as_list
    ):
        return Question(key, _METHOD, params, "sampling.tools", _read_with_tools)
    return Question(key, _METHOD, params, "sampling", _read_result)


def _message(message: MessageLike) -> SamplingMessage:
    match message:
        case SamplingMessage():
            return message
        case str():
            return _message(Message(message))
        case Message(content=str(text)):
            return SamplingMessage(role=message.role, content=TextContent(type="text", text=text))
        case Message(content=TextContent() | ImageContent() | AudioContent() as block):
            return SamplingMessage(role=message.role, content=block)
        case _:
            raise QuestionRefusedError(
                "a sampling message must be text, image or audio: "
                "a str, a Message or a SamplingMessage"
            )


def _problems(
    messages: Sequence[SamplingMessage], max_tokens: Any, options: Mapping[str, Any]
) -> Iterator[str]:
    if not messages:
        yield "there is no message"
    if unknown := options.keys() - SamplingOptions.__annotations__:
        yield f"it has no option {min(unknown)!r}"
    if type(max_tokens) is not int or max_tokens < 1:
        yield "max_tokens must be a whole number above 0"
    temperature = options.get("temperature")
    if temperature is not None and (
        type(temperature) not in (int, float) or not isfinite(temperature)
    ):
        yield "temperature must be a number"
    if isinstance(options.get("stop_sequences"), str):
        yield "stop_sequences is a list of texts"
    tools = options.get("tools", ())
    names = {tool.name for tool in tools}
    if len(names) < len(tools):
        yield "two tools have the same name"
    if any(tool.input_schema.get("type") != "object" for tool in tools):
        yield 'the input schema of a tool has the type "object"'
    if options.get("tool_choice") is not None and not names:
        yield "there is no tool to choose"
    yield from _use_problems(messages)


def _use_problems(messages: Sequence[SamplingMessage]) -> Iterator[str]:
    """Check that each tool use is followed by its result ("Message Content Constraints")."""
    waiting: list[str] = []
    for message in messages:
        blocks = message.content_as_list
        results = [block.tool_use_id for block in blocks if isinstance(block, ToolResultContent)]
        uses = [block.id for block in blocks if isinstance(block, ToolUseContent)]
        if results and (len(results) < len(blocks) or message.role != "user"):
            yield "a message with results of tools is the user's and holds nothing else"
        if uses and message.role != "assistant":
            yield "tools are used by the assistant"
        if sorted(results) != sorted(waiting):
            yield "each use of a tool must be followed by its result, in one message of the user"
        waiting = uses
    if waiting:
        yield "the last message uses tools: their results are missing"


def _as_json(model: BaseModel | None) -> dict[str, Any] | None:
    if model is None:
        return None
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _read_with_tools(result: Mapping[str, Any]) -> CreateMessageResultWithTools:
    return read_as(CreateMessageResultWithTools, result)


def _read_result(result: Mapping[str, Any]) -> CreateMessageResult:
    """Read a result with one content block. Clients may also send a list of one block, or of text
    blocks."""
    content = result.get("content")
    if isinstance(content, list) and len(content) == 1:
        result = {**result, "content": content[0]}
    elif isinstance(content, list):
        if not content or not all(
            isinstance(b, dict) and isinstance(b.get("text"), str) for b in content
        ):
            raise InvalidAnswerError("its content must be one text, image or audio")
        text = "".join(block["text"] for block in content)
        result = {**result, "content": {"type": "text", "text": text}}
    return read_as(CreateMessageResult, result)
