"""Tests of finding the tool on a stack."""

import sys
from types import FrameType

from mcphost.kinds.python.stacks import tool_on


def frame_in(module: str) -> FrameType:
    """Return a frame of a function `slow` of `module`, with a helper of another module on top."""
    helper = {"__name__": "helpers", "look": sys._getframe}
    exec("def help():\n    return look()", helper)
    scope = {"__name__": module, "help": helper["help"]}
    exec("def inner():\n    return help()\ndef slow():\n    return inner()", scope)
    frame = scope["slow"]()  # type: ignore[operator]
    assert isinstance(frame, FrameType)
    return frame


def test_the_outermost_function_of_a_tool_is_named() -> None:
    assert tool_on(frame_in("mcphost_tools.demo")) == "demo.slow"
