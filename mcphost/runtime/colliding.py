"""Detect whole numbers whose hashes collide: they make `uniqueItems` very slow.

`jsonschema_rs` finds equal items by a hash of their numbers as floats. Different whole numbers
beyond 2^53 that round to the same float, and items that contain them, are compared each with each:
2,000 of them take seconds.
"""

from collections.abc import Mapping
from itertools import chain
from typing import Any, Final

import orjson

from mcphost.protocol.effort import holds_at_most
from mcphost.protocol.subschemas import walk

EXACT: Final = 2**53
"""From here on, different whole numbers may be the same float."""
FEW: Final = 100
"""How many numbers may be compared each with each."""

_NUMBERS: Final = frozenset({int, float})
_DIGITS: Final = bytes(0 if 48 <= byte <= 57 else 1 for byte in range(256))
_LONG: Final = bytes(len(str(EXACT)))


def wants_different(schema: Any) -> bool:
    """Whether a schema has `uniqueItems` anywhere."""
    return isinstance(schema, Mapping) and any(
        subschema.keywords.get("uniqueItems") is True for subschema in walk(schema)
    )


def collide(value: Any) -> bool:
    """Whether JSON has more than a few large numbers, with different ones that are the same float."""
    if holds_at_most(value, FEW):
        return False
    try:
        written = orjson.dumps(value)
    except TypeError:  # the next check refuses values that are not JSON
        return False
    # Without so many digits in a row there is no such number. A walk in Python takes ten times as
    # long.
    if _LONG not in written.translate(_DIGITS):
        return False
    numbers: list[int | float] = []
    level = [value]
    while level:
        numbers += [number for number in level if type(number) in _NUMBERS and abs(number) >= EXACT]
        holders = (node for node in level if type(node) is dict or type(node) is list)
        parts = (holder.values() if type(holder) is dict else holder for holder in holders)
        level = list(chain.from_iterable(parts))
    if len(numbers) <= FEW:
        return False
    floats = len(set(map(float, numbers)))
    return floats < len(numbers) and floats < len(set(numbers))
