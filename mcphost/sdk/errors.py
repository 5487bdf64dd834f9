"""The exceptions that a tool may raise, and those of its questions. Their texts are for people.

ToolError            an error that the caller should read
  Declined           the user declined the question
  Cancelled          the user dismissed the question without a choice
  AnswerFailedError       the client could not ask the question, or its answer is an error
  AnswerTimedOutError     there was no answer in time
CapabilityMissingError    the client lacks a capability that the tool needs
LinkRefusedError          a page or a callback cannot be made, or not be waited for (runtime.ports)
StoreRefusedError         a value cannot be stored or read (runtime.ports)

The caller reads the text of each of them, if the tool does not catch it.
"""

from mcphost.runtime.journal import TIMED_OUT
from mcphost.runtime.questions import CapabilityMissingError as CapabilityMissingError
from mcphost.runtime.questions import UnansweredError


class ToolError(Exception):
    """An error that the caller should read and can learn from: sent as a result with `isError`."""


class Declined(ToolError):  # noqa: N818 - what the person did
    """The user declined the question. If not caught, the caller gets this as the tool's result."""

    def __init__(self, key: str = "") -> None:
        self.key = key
        super().__init__(f"Not done: the question{_named(key)} was declined.")


class Cancelled(ToolError):  # noqa: N818 - what the person did
    """The user dismissed the question without a choice; the tool may ask again later."""

    def __init__(self, key: str = "") -> None:
        self.key = key
        super().__init__(f"Not done: the question{_named(key)} was dismissed without an answer.")


class AnswerFailedError(ToolError):
    """The client could not ask the question, or answered it with an error, whose text is `message`.

    Clients of the stateless revision cannot report this: they do not ask the user, or retry without
    an answer.
    """

    def __init__(self, key: str = "", message: str = "") -> None:
        self.key = key
        self.message = message
        detail = f": {message}" if message else "."
        super().__init__(f"Not done: the question{_named(key)} could not be answered{detail}")


class AnswerTimedOutError(ToolError):
    """There was no answer within the time that the tool waits for answers."""

    def __init__(self, key: str = "") -> None:
        self.key = key
        super().__init__(f"Not done: there was no answer to the question{_named(key)} in time.")


def answer_error(why: UnansweredError) -> ToolError:
    """Convert a question without an answer to the error that its author can catch."""
    return (
        AnswerTimedOutError(why.key)
        if why.how == TIMED_OUT
        else AnswerFailedError(why.key, why.message)
    )


def _named(key: str) -> str:
    return f" {key!r}" if key else ""
