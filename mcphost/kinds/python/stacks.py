"""Finds the tool whose code is on a stack."""

from types import FrameType

from mcphost.kinds.python.discovery import PREFIX


def tool_on(frame: FrameType | None) -> str | None:
    """Return the tool (`<module>.<function>`) whose code is on the stack under `frame`, or None.

    The outermost one counts: the function that the platform called.
    """
    tool = None
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith(f"{PREFIX}."):
            tool = f"{module.removeprefix(f'{PREFIX}.')}.{frame.f_code.co_name}"
        frame = frame.f_back
    return tool
