"""Texts with `{placeholders}`.

Only a name between single braces is a placeholder, so JSON and code need no escaping; `{{name}}`
becomes the text `{name}`. Values are inserted once and not searched for placeholders: whatever a
caller sends is plain text.
"""

import re
from collections import Counter
from collections.abc import Mapping

_PLACEHOLDER = re.compile(r"\{\{([A-Za-z_][A-Za-z0-9_-]*)\}\}|\{([A-Za-z_][A-Za-z0-9_-]*)\}")


def names_in(text: str) -> list[str]:
    """Return the names of the placeholders in a text, in order, each once."""
    names = (match[2] for match in _PLACEHOLDER.finditer(text))
    return list(dict.fromkeys(name for name in names if name))


def count_in(text: str) -> int:
    """Count the places in a text that filling has to process."""
    return sum(1 for _ in _PLACEHOLDER.finditer(text))


class Filling:
    """A text that is parsed once and filled many times."""

    def __init__(self, text: str) -> None:
        self._pieces: list[str | None] = []
        self._names: list[str] = []
        end = 0
        for match in _PLACEHOLDER.finditer(text):
            self._pieces.append(text[end : match.start()])
            if match[2]:
                self._pieces.append(None)
                self._names.append(match[2])
            else:
                self._pieces.append(f"{{{match[1]}}}")
            end = match.end()
        self._pieces.append(text[end:])
        self._uses = Counter(self._names)
        self._length = sum(len(piece) for piece in self._pieces if piece)

    def length(self, values: Mapping[str, str]) -> int:
        """Return the length of the result of `fill`, without creating it."""
        filled = sum(len(values.get(name, "")) * uses for name, uses in self._uses.items())
        return self._length + filled

    def fill(self, values: Mapping[str, str]) -> str:
        """Return the text with values for its placeholders, empty where there is no value."""
        names = iter(self._names)
        return "".join(
            values.get(next(names), "") if piece is None else piece for piece in self._pieces
        )


def fill(text: str, values: Mapping[str, str]) -> str:
    """Fill a text that is used only once."""
    return Filling(text).fill(values)
