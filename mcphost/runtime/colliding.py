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
_DIGITS: Final = bytes(0 if 48 <= each <= 57 else 1 for each in range(256))
_LONG: Final = bytes(len(str(EXACT)))


def wants_different(schema: Any) -> bool:
    """Whether a schema has `uniqueItems` anywhere."""
    return isinstance(schema, Mapping) and any(
        each.keywords.get("uniqueItems") is True for each in walk(schema)
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
    found: list[int | float] = []
    level = [value]
    while level:
        found += [each for each in level if type(each) in _NUMBERS and abs(each) >= EXACT]
        holders = (each for each in level if type(each) is dict or type(each) is list)
        parts = (each.values() if type(each) is dict else each for each in holders)
        level = list(chain.from_iterable(parts))
    if len(found) <= FEW:
        return False
    floats = len(set(map(float, found)))
    return floats < len(found) and floats < len(set(found))
