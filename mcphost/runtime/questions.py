"""A question to the client: its request, the required client capability, and how to read the
answer."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from mcphost.protocol.json_values import digest, dump_json

T = TypeVar("T")

_PRIMITIVES: Final = {"prompts/get": "prompt", "resources/read": "resource"}
_KEY: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class InvalidAnswerError(Exception):
    """An answer does not fit its question, which is asked again. The message gives the reason."""


class UnansweredError(Exception):
    """A question was asked, and there will be no answer: `how` is as in `journal.Answer.failure`."""

    def __init__(self, key: str, how: str, message: str) -> None:
        self.key = key
        self.how = how
        self.message = message
        super().__init__(message)


class QuestionRefusedError(Exception):
    """A question must not be asked in this form. The message is for the tool's author."""


class CapabilityMissingError(Exception):
    """The client did not declare a capability. `required` has the shape of `ClientCapabilities`; `method`
    is that of the call."""

    def __init__(self, capability: str, method: str = "tools/call") -> None:
        self.capability = capability
        primitive = _PRIMITIVES.get(method, "tool")
        super().__init__(f"This {primitive} needs a client with the capability {capability!r}.")

    @property
    def required(self) -> dict[str, Any]:
        shape: dict[str, Any] = {}
        for step in reversed(self.capability.split(".")):
            shape = {step: shape}
        return shape


@dataclass(frozen=True, slots=True)
class Question(Generic[T]):
    """One question under the author's key: an MCP method (`elicitation/create`, …) and its params.

    `capability` is the client capability that it needs, dotted (`elicitation.form`). `read`
    converts the method's result to the author's value, or raises InvalidAnswerError. `digest` is
    recorded with the answer, so that the answer is valid for this question only.

    Raises QuestionRefusedError for an invalid key, and for params that are not JSON.
    """

    key: str
    method: str
    params: Mapping[str, Any]
    capability: str
    read: Callable[[Mapping[str, Any]], T] = field(compare=False)
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        key: Any = self.key  # of an author, who may pass anything
        if not isinstance(key, str) or _KEY.fullmatch(key) is None:
            raise QuestionRefusedError(
                f"{self.key!r} is not a key: use 1 to 64 of A-Z a-z 0-9 _ . -"
            )
        try:
            object.__setattr__(self, "params", dump_json(self.params)[1])
            named = digest([self.method, self.params])
        except (TypeError, ValueError) as error:
            raise QuestionRefusedError(f"the question {self.key!r} is not JSON: {error}") from None
        object.__setattr__(self, "digest", named)
