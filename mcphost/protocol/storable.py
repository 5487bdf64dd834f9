"""What JSON can be stored, and read back as it was.

PostgreSQL has no U+0000 in texts, UTF-8 no lone surrogates, and the parsers read integers of at most 64
bits.
"""

import math
import unicodedata
from collections.abc import Mapping
from typing import Any, Final

MAX_DEPTH: Final = 64
MAX_INTEGER: Final = 2**63


def check_json(value: Any) -> list[str]:
    """Return why a value cannot be stored as JSON, in sentences; empty if it can."""
    pending = [(value, 1)]
    while pending:
        part, depth = pending.pop()
        if depth > MAX_DEPTH:
            return [f"It is nested deeper than {MAX_DEPTH} levels."]
        if isinstance(part, Mapping):
            pending += [(child, depth + 1) for pair in part.items() for child in pair]
            if not all(isinstance(key, str) for key in part):
                return ["The keys of an object must be strings."]
        elif isinstance(part, list | tuple):
            pending += [(child, depth + 1) for child in part]
        elif problem := _no_scalar(part):
            return [problem]
    return []


def _no_scalar(value: Any) -> str:
    if isinstance(value, str):
        bad = next((c for c in value if c == "\0" or unicodedata.category(c) == "Cs"), "")
        return f"The character U+{ord(bad):04X} is not allowed here." if bad else ""
    if isinstance(value, float):
        return "" if math.isfinite(value) else "Infinite numbers and NaN are not allowed here."
    if isinstance(value, int):
        return "" if -MAX_INTEGER <= value < MAX_INTEGER else "An integer has at most 64 bits."
    return (
        ""
        if value is None
        else "Only strings, numbers, true, false, null, lists and objects are allowed here."
    )
