"""Whole numbers that a message must not change: JSON's have any size, and ours at most 64 bits.

The parser reads a larger one as a float, so that 12345678901234567890123 would become
1.2345678901234568e+22. Programs that write floats without an exponent, as JavaScript does below 1e21, lose
nothing: the float that is read is the number that was written.
"""

import re
from decimal import Decimal
from typing import Final

from mcphost.protocol.errors import invalid_params

STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
"""A string, or the rest of a text whose last string has no end: else each quotation mark in it would be
tried as the start of another one, in quadratic time."""
MAX_SHOWN: Final = 40
_MAX_EXACT: Final = 2**53
"""Whole numbers below it are exact as floats."""
_NUMBER: Final = re.compile(rb"-?[0-9][0-9.]{15,}[0-9.eE+-]*")
"""A number that may have more digits than a float."""
MANY_DIGITS: Final = b"0" * 16
AS_ZEROS: Final = bytes(48 if byte in b"0123456789." else 32 for byte in range(256))
"""`MANY_DIGITS in text.translate(AS_ZEROS)` is false for nearly every text: it has no number to check."""


def check_numbers(text: bytes) -> None:
    """Refuse a message with a whole number that would be changed. Raises INVALID_PARAMS.

    `text` is JSON.
    """
    number = changed_number(text)
    if number:
        shown = number if len(number) <= MAX_SHOWN else f"{number[:MAX_SHOWN]}…"
        raise invalid_params(
            f"The integer {shown} has more than 64 bits, and would be changed: send a string where the "
            "schema allows one"
        )


def changed_number(text: bytes) -> str:
    """Return the first whole number of a JSON text that the parser would change; empty if there is none."""
    if MANY_DIGITS not in text.translate(AS_ZEROS):
        return ""
    numbers = (match[0].decode() for match in _NUMBER.finditer(STRING.sub(b" ", text)))
    return next((number for number in numbers if _is_changed(number)), "")


def _is_changed(literal: str) -> bool:
    read, written = float(literal), Decimal(literal)
    if abs(read) < _MAX_EXACT or written != written.to_integral_value():
        return False
    if literal.lstrip("-").isdecimal() and -(2**63) <= written < 2**64:
        return False
    return Decimal(repr(read)) != written
