"""The core schema of YAML 1.2 (section 10.3.2): which texts without quotes are no strings."""

import re
from typing import Final

PLAIN_SCALAR: Final = re.compile(
    r"(?P<null>null|Null|NULL|~|)|(?P<true>true|True|TRUE)|(?P<false>false|False|FALSE)"
    r"|(?P<int>[-+]?[0-9]+)|(?P<octal>0o[0-7]+)|(?P<hex>0x[0-9a-fA-F]+)"
    r"|(?P<float>[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?)"
    r"|(?P<infinite>[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))"
)
"""Matches such a text as a whole; the group that matched is its type."""
MAX_INTEGER_DIGITS: Final = 40
"""Characters that are read as an integer: what is longer has more than 64 bits."""
