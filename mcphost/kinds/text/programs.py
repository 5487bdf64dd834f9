"""The programs of text prompts and resources: they return the text, with values for its
placeholders.

A text can repeat a placeholder many times, and a caller's value can be long, so the length of the
result is computed before the result is created.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from mcphost.kinds.text.placeholders import Filling
from mcphost.runtime.call import Call
from mcphost.runtime.journal import Journal
from mcphost.runtime.outcomes import Complete, Failed, Failure, FailureKind, Outcome
from mcphost.runtime.ports import Ports

Values = Mapping[str, str]


class FilledBlock:
    """A content block, or a resource's contents, with placeholders in its text.

    For an embedded resource, length and text are those of the resource.
    """

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._content = content
        self._resource = FilledBlock(content["resource"]) if "resource" in content else None
        self._text = Filling(content["text"]) if "text" in content else None
        self._binary = len(content.get("data", "")) + len(content.get("blob", ""))

    def length(self, values: Values) -> int:
        """Return the length of the filled text or of the binary content, in characters."""
        if self._resource is not None:
            return self._resource.length(values)
        return self._binary if self._text is None else self._text.length(values)

    def fill(self, values: Values) -> Mapping[str, Any]:
        if self._resource is not None:
            return {**self._content, "resource": self._resource.fill(values)}
        if self._text is not None:
            return {**self._content, "text": self._text.fill(values)}
        return self._content


class PromptText:
    """The messages of a prompt (spec: server/prompts, GetPromptResult)."""

    def __init__(self, messages: Sequence[Mapping[str, Any]]) -> None:
        self._messages = [(message, FilledBlock(message["content"])) for message in messages]

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
    """The contents of a resource template, with the values of the URI's variables in the text."""

    def __init__(self, contents: Mapping[str, Any]) -> None:
        self._contents = FilledBlock(contents)

    async def advance(self, call: Call, journal: Journal, ports: Ports) -> Outcome:
        if self._contents.length(call.arguments) > ports.limits.result_bytes:
            return _too_long(ports)
        contents = {"uri": call.target, **self._contents.fill(call.arguments)}
        return Complete({"contents": [contents]})


def _too_long(ports: Ports) -> Outcome:
    message = f"With these values this is longer than {ports.limits.result_bytes} bytes."
    return Failed(Failure(FailureKind.INVALID_ARGUMENTS, message))
