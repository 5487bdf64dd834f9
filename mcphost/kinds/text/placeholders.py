"""Texts with `{placeholders}`.

Only a name between single braces is one, so JSON and code may stand as they are; `{{name}}` is for a
text that shall say `{name}`. Values are put in once and never looked at again: what a caller sends
is text, whatever it looks like.
"""

import re
from collections.abc import Mapping

_PLACEHOLDER = re.compile(r"\{\{([A-Za-z_][A-Za-z0-9_-]*)\}\}|\{([A-Za-z_][A-Za-z0-9_-]*)\}")


def names_in(text: str) -> list[str]:
    """The names of the placeholders in a text, in order, each once."""
    found = (match[2] for match in _PLACEHOLDER.finditer(text))
    return list(dict.fromkeys(name for name in found if name))


def fill(text: str, values: Mapping[str, str]) -> str:
    """The text with values for its placeholders; nothing where there is no value."""
    return _PLACEHOLDER.sub(lambda match: _piece(match, values), text)


def _piece(match: re.Match[str], values: Mapping[str, str]) -> str:
    return f"{{{match[1]}}}" if match[1] else values.get(match[2], "")
