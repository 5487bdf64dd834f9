"""What runs when a prompt or a resource that is data is asked for: its text, with values put in."""

from collections.abc import Mapping, Sequence
from typing import Any

from mcphost.kinds.text.placeholders import fill
from mcphost.runtime.call import Call
from mcphost.runtime.journal import Journal
from mcphost.runtime.outcomes import Complete, Outcome
from mcphost.runtime.ports import Ports


class PromptText:
    """The messages of a prompt (spec: server/prompts, GetPromptResult)."""

    def __init__(self, messages: Sequence[Mapping[str, Any]]) -> None:
        self._messages = messages

    async def advance(self, call: Call, journal: Journal, ports: Ports) -> Outcome:
        messages = [
            {**message, "content": _filled(message["content"], call.arguments)}
            for message in self._messages
        ]
        return Complete({"messages": messages})


class ResourceText:
    """The contents of a resource (spec: server/resources, ReadResourceResult)."""

    def __init__(self, contents: Mapping[str, Any]) -> None:
        self._contents = contents

    def _of(self, call: Call) -> Mapping[str, Any]:
        return self._contents

    async def advance(self, call: Call, journal: Journal, ports: Ports) -> Outcome:
        return Complete({"contents": [{"uri": call.target, **self._of(call)}]})


class TemplateText(ResourceText):
    """The same with the values of a URI template's variables in the text."""

    def _of(self, call: Call) -> Mapping[str, Any]:
        return _filled(self._contents, call.arguments)


def _filled(content: Mapping[str, Any], values: Mapping[str, str]) -> Mapping[str, Any]:
    """A block with values in its text, or in the text of the resource that it holds."""
    if "resource" in content:
        return {**content, "resource": _filled(content["resource"], values)}
    if "text" in content:
        return {**content, "text": fill(content["text"], values)}
    return content
