"""Messages of the type checker: which of them hold, and in whose words they are."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from mcphost.kinds.script.signature import in_characters, parsed

_UNKNOWN_MODULE: Final = "Cannot resolve imported module"
_FUTURE: Final = "__future__ imports must be at the top"
"""The type checker says so of each: it puts the declarations of the server's functions before."""
_UNSUPPORTED: Final = re.compile(
    r"(?:NotImplementedError|SyntaxError): .*?does not (?:yet )?support (.*)", re.DOTALL
)
_NOT_SUPPORTED: Final = re.compile(r"NotImplementedError: (.*?) (?:are|is) not (?:yet )?supported")
_UNKNOWN_TYPE: Final = "`object`"
"""The type that the checker gives to the parameters of a function such as `reduce(lambda a, b: a + b, …)`."""


def checked_rows(code: str, rows: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of the type checker that hold, in plain words. Raises ScriptProblemError."""
    lambdas = list(lambda_spans(code))
    for row in rows:
        message = in_plain_words(row["message"])
        at = row["line"], row["column"]
        is_guessed = _UNKNOWN_TYPE in message and any(
            first <= at <= last for first, last in lambdas
        )
        if message and not is_guessed:
            yield {**row, "message": message}


def in_plain_words(message: str) -> str:
    """Return a message of the interpreter without the interpreter's name; empty if `differences_in`
    says the same."""
    if message.startswith((_UNKNOWN_MODULE, _FUTURE)):
        return ""
    if match := _UNSUPPORTED.match(message):
        return f"A script cannot use {match[1].strip()}."
    if match := _NOT_SUPPORTED.match(message):
        return f"A script cannot use {match[1][:1].lower()}{match[1][1:]}."
    return message


def lambda_spans(code: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield where the lambdas of a script begin and end: lines, and columns in characters."""
    for node in ast.walk(parsed(code)):
        if isinstance(node, ast.Lambda):
            last, end = node.end_lineno or node.lineno, node.end_col_offset or 0
            first = in_characters(code, node.lineno, node.col_offset + 1)
            yield (node.lineno, first), (last, in_characters(code, last, end + 1))
