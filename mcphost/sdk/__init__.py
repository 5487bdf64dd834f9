"""The complete API for authors of tools, prompts and resources.

A tool is a function with type hints. Its schemas are derived from them, its description is its
docstring, in which the section `Args:` describes the arguments:

    from mcphost.sdk import Context, tool

    @tool(title="Count words")
    async def count_words(ctx: Context, text: str) -> int:
        '''Count the words of a text.'''
        ctx.progress(1, 1)
        return len(text.split())

The function stays callable as before. Its return value is sent as follows:

- `str`: one text block. `None`: no content. A content object (`Text`, `Image`, …), or a list of
  them: unchanged. `Result`: exactly its fields. None of these has an output schema.
- any other type that pydantic can write as JSON (a model, a dataclass, a list, a dict, a number,
  and before Python 3.12 the TypedDict of typing_extensions): structured content, validated against
  the output schema of the return type, and the same JSON as a text block for older clients.

`@prompt` and `@resource` offer a function as a prompt or as a resource; see there.

Raise ToolError to send the caller an error message; any other exception is logged, and the caller
learns only that the tool failed. A function that blocks is declared with a plain `def` and runs in
a thread of its own; there the context is a SyncContext, whose methods block and need no `await`.
"""

from mcp_types import (
    Annotations,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ModelHint,
    ModelPreferences,
    Root,
    SamplingMessage,
    Tool,
    ToolAnnotations,
    ToolChoice,
    ToolResultContent,
    ToolUseContent,
)

from mcphost.runtime.notification_channel import CallEndedError
from mcphost.runtime.ports import LinkRefusedError, StoreRefusedError
from mcphost.runtime.program import TaskSupport
from mcphost.runtime.questions import QuestionRefusedError
from mcphost.runtime.rounds import ForeignContextError
from mcphost.sdk.content import (
    Audio,
    BlobResource,
    Content,
    EmbeddedResource,
    Image,
    Message,
    ResourceLink,
    Result,
    Text,
    TextResource,
)
from mcphost.sdk.context import Context, current
from mcphost.sdk.errors import (
    AnswerFailedError,
    AnswerTimedOutError,
    Cancelled,
    CapabilityMissingError,
    Declined,
    ToolError,
)
from mcphost.sdk.forms import Form
from mcphost.sdk.marking import complete
from mcphost.sdk.prompts import PromptDefinition, prompt
from mcphost.sdk.questions import FormAnswer, UrlAnswer
from mcphost.sdk.resources import ResourceDefinition, resource
from mcphost.sdk.sync import SyncContext, current_sync
from mcphost.sdk.tools import ToolDefinition, tool

__all__ = [
    "Annotations",
    "AnswerFailedError",
    "AnswerTimedOutError",
    "Audio",
    "BlobResource",
    "CallEndedError",
    "Cancelled",
    "CapabilityMissingError",
    "Content",
    "Context",
    "CreateMessageResult",
    "CreateMessageResultWithTools",
    "Declined",
    "EmbeddedResource",
    "ForeignContextError",
    "Form",
    "FormAnswer",
    "Image",
    "LinkRefusedError",
    "Message",
    "ModelHint",
    "ModelPreferences",
    "PromptDefinition",
    "QuestionRefusedError",
    "ResourceDefinition",
    "ResourceLink",
    "Result",
    "Root",
    "SamplingMessage",
    "StoreRefusedError",
    "SyncContext",
    "TaskSupport",
    "Text",
    "TextResource",
    "Tool",
    "ToolAnnotations",
    "ToolChoice",
    "ToolDefinition",
    "ToolError",
    "ToolResultContent",
    "ToolUseContent",
    "UrlAnswer",
    "complete",
    "current",
    "current_sync",
    "prompt",
    "resource",
    "tool",
]
