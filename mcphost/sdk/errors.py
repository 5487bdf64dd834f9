"""What a tool may raise, and what asking raises. The texts are for people.

ToolError            something that the caller should read
  Declined           a person was asked and said no
  Cancelled          a person was asked and did not choose
  AnswerFailed       the client could not put the question, or its answer is an error
  AnswerTimedOut     nobody answered in time
CapabilityMissing    the client cannot do what the tool needs
"""

from mcphost.runtime.journal import TIMED_OUT
from mcphost.runtime.questions import CapabilityMissing as CapabilityMissing
from mcphost.runtime.questions import Unanswered


class ToolError(Exception):
    """Something the caller should read and can learn from: sent as a result with `isError`."""


class Declined(ToolError):  # noqa: N818 - what the person did
    """The person who was asked said no. Uncaught, the caller reads that as the tool's result."""

    def __init__(self, key: str = "") -> None:
        self.key = key
        super().__init__(f"Not done: the question{_named(key)} was declined.")


class Cancelled(ToolError):  # noqa: N818 - what the person did
    """The person who was asked closed the question without choosing; asking later may do."""

    def __init__(self, key: str = "") -> None:
        self.key = key
        super().__init__(f"Not done: the question{_named(key)} was dismissed without an answer.")


class AnswerFailed(ToolError):  # noqa: N818 - what became of the question
    """The client could not put the question, or answered it with an error, which says `message`.

    Clients of the stateless revision cannot say so: they ask nobody, or come back without an answer.
    """

    def __init__(self, key: str = "", message: str = "") -> None:
        self.key = key
        self.message = message
        said = f": {message}" if message else "."
        super().__init__(f"Not done: the question{_named(key)} could not be answered{said}")


class AnswerTimedOut(ToolError):  # noqa: N818 - what became of the question
    """Nobody answered within the time that the tool waits for answers."""

    def __init__(self, key: str = "") -> None:
        self.key = key
        super().__init__(f"Not done: nobody answered the question{_named(key)} in time.")


def told(why: Unanswered) -> ToolError:
    """What became of a question, as its author can catch it."""
    return AnswerTimedOut(why.key) if why.how == TIMED_OUT else AnswerFailed(why.key, why.message)


def _named(key: str) -> str:
    return f" {key!r}" if key else ""
