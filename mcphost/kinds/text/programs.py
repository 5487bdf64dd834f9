"""What runs when a prompt or a resource that is data is asked for: its text, with values put in.

A text can name a value many times, and a caller's value can be long: how much it will be is known
before it is made.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from mcphost.kinds.text.placeholders import Filling
from mcphost.runtime.call import Call
from mcphost.runtime.journal import Journal
from mcphost.runtime.outcomes import Complete, Failed, Failure, FailureKind, Outcome
from mcphost.runtime.ports import Ports

Values = Mapping[str, str]


class Block:
    """A block of content, or a resource's contents, with placeholders in its text.

    What the resource that it holds has counts as its own.
    """

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._content = content
        self._held = Block(content["resource"]) if "resource" in content else None
        self._text = Filling(content["text"]) if "text" in content else None
        self._binary = len(content.get("data", "")) + len(content.get("blob", ""))

    def length(self, values: Values) -> int:
        """How many characters its text gets, or its binary content has."""
        if self._held is not None:
            return self._held.length(values)
        return self._binary if self._text is None else self._text.length(values)

    def fill(self, values: Values) -> Mapping[str, Any]:
        if self._held is not None:
            return {**self._content, "resource": self._held.fill(values)}
        if self._text is not None:
            return {**self._content, "text": self._text.fill(values)}
        return self._content


class PromptText:
    """The messages of a prompt (spec: server/prompts, GetPromptResult)."""

    def __init__(self, messages: Sequence[Mapping[str, Any]]) -> None:
        self._messages = [(message, Block(message["content"])) for message in messages]

    async def advance(self, call: Call, journal: Journal, ports: Ports) -> Outcome:
        values = call.arguments
        length = sum(block.length(values) for _, block in self._messages)
        if length > ports.limits.result_bytes:
            return _too_long(ports)
        messages = [{**message, "content": block.fill(values)} for message, block in self._messages]
        return Complete({"messages": messages})


class ResourceText:
    """The contents of a resource (spec: server/resources, ReadResourceResult)."""

    def __init__(self, contents: Mapping[str, Any]) -> None:
        self._contents = contents

    async def advance(self, call: Call, journal: Journal, ports: Ports) -> Outcome:
        return Complete({"contents": [{"uri": call.target, **self._contents}]})


class TemplateText:
    """The same with the values of a URI template's variables in the text."""

    def __init__(self, contents: Mapping[str, Any]) -> None:
        self._contents = Block(contents)

    async def advance(self, call: Call, journal: Journal, ports: Ports) -> Outcome:
        if self._contents.length(call.arguments) > ports.limits.result_bytes:
            return _too_long(ports)
        contents = {"uri": call.target, **self._contents.fill(call.arguments)}
        return Complete({"contents": [contents]})


def _too_long(ports: Ports) -> Outcome:
    message = f"With these values this is longer than {ports.limits.result_bytes} bytes."
    return Failed(Failure(FailureKind.INVALID_ARGUMENTS, message))
