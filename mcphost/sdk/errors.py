"""What a tool may raise, and what asking raises. The texts are for people.

ToolError            something that the caller should read
  Declined           a person was asked and said no
  Cancelled          a person was asked and did not choose
CapabilityMissing    the client cannot do what the tool needs
"""

from mcphost.runtime.questions import CapabilityMissing as CapabilityMissing


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


def _named(key: str) -> str:
    return f" {key!r}" if key else ""
