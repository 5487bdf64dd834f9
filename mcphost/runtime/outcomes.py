"""The outcomes of one round of a program: values, without I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from mcphost.runtime.journal import Journal


class FailureKind(StrEnum):
    """Why a round failed. Each delivery decides what the client is sent."""

    TOOL_ERROR = "tool_error"
    INVALID_ARGUMENTS = "invalid_arguments"
    INVALID_RESULT = "invalid_result"
    TIMED_OUT = "timed_out"
    OVERLOADED = "overloaded"
    CAPABILITY_MISSING = "capability_missing"
    ASKED_TOO_OFTEN = "asked_too_often"
    JOURNAL_TOO_LARGE = "journal_too_large"
    CRASHED = "crashed"


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure. `message` is for the caller, without internals; `detail` is for the log.

    `required` has the missing client capabilities, in the shape of `ClientCapabilities`, for
    `CAPABILITY_MISSING` only.
    """

    kind: FailureKind
    message: str
    detail: str = ""
    required: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class InputRequest:
    """One question to the client: an MCP method (`elicitation/create`, …) and its params.

    `digest` identifies the question (`runtime.questions`) and is recorded with its answer.
    """

    key: str
    method: str
    params: Mapping[str, Any]
    digest: str = ""


@dataclass(frozen=True, slots=True)
class Complete:
    """The round finished the call. `result` is the method's result in JSON, without envelope
    fields; `size` is its length in bytes, if it is known."""

    result: Mapping[str, Any]
    size: int | None = field(default=None, compare=False)

    @property
    def is_error(self) -> bool:
        return bool(self.result.get("isError"))


@dataclass(frozen=True, slots=True)
class InputRequired:
    """The round needs answers to these questions.

    `invalid` has, by key, the reason why a given answer was not accepted. Its question is asked
    again, and the answer is no longer in the journal.
    """

    requests: tuple[InputRequest, ...]
    journal: Journal
    invalid: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Yielded:
    """The round is to be continued in another process, from this journal. `reason` is what the port
    `reason_to_move` returned."""

    journal: Journal
    reason: str


@dataclass(frozen=True, slots=True)
class Deferred:
    """The call is to be continued as a task, from this journal. `instead_of_refusal`: because it would have been
    refused for lack of a thread or a slot."""

    journal: Journal
    instead_of_refusal: bool = False


@dataclass(frozen=True, slots=True)
class Failed:
    """The round failed."""

    error: Failure


Outcome = Complete | InputRequired | Yielded | Deferred | Failed
