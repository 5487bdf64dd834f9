"""A function is inspected once, and the error names the reason if it cannot be a tool."""

import functools
from collections.abc import Callable
from typing import Any

from mcphost.sdk import tool
from tests.kinds.rounds import result


def loud(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator whose wrapper is not a coroutine function, whatever it wraps."""

    @functools.wraps(function)
    def wrapper(*args: Any, **named: Any) -> Any:
        return function(*args, **named)

    return wrapper


async def test_a_wrapped_coroutine_function_is_still_awaited() -> None:
    @tool
    @loud
    async def function(text: str) -> str:
        return text

    assert await result(function, {"text": "a"}) == {"content": [{"type": "text", "text": "a"}]}
