"""A function is inspected once, and the error names the reason if it cannot be a tool."""

import functools
from collections.abc import Callable
from typing import Any

from mcphost.sdk import tool
from tests.kinds.rounds import result, seen


def test_the_first_paragraph_of_the_docstring_describes_the_tool() -> None:
    def function() -> None:
        """Count the words
        of a text.

        How they are counted is nobody's business.
        """

    assert seen(function).description == "Count the words of a text."


def test_the_authors_own_words_come_first() -> None:
    @tool(name="count-words", description="Counts words.")
    def function() -> None:
        """Count."""

    assert seen(function).description == "Counts words."
    assert seen(function).name == "count-words"


def test_without_words_there_is_a_name_and_no_description() -> None:
    def function() -> None: ...

    assert seen(function).description == ""
    assert seen(function).name == "function"


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
