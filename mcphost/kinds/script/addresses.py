"""Percent-encode the caller's texts in the address of a script's request, so that each is one path
segment or one query value.

A script builds an address with an f-string or `+`, so the server receives one text. It knows the texts in
the call's arguments and answers, and percent-encodes those that it finds in the address: in them `/`, `?`,
`#` and the like are data. A text at the beginning of the address is not encoded, because it is the address
itself, as in `http.get(url)`. A text that the script has changed is not recognized; scripts use `quote` then.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final
from urllib.parse import quote

from mcphost.egress.addresses import MAX_URL
from mcphost.kinds.script.signature import parsed
from mcphost.sdk.errors import ToolError

_STRUCTURAL: Final = re.compile(r"[/?#&=+%;\\\s\x00-\x1f\x7f]")
"""Characters that may end a segment of a path or a value of a query."""
_ORIGIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#\\]*")
_LABEL: Final = re.compile(r"[A-Za-z0-9-]*")
_BLANK: Final = re.compile(r"[\s\x00-\x20\x7f]+")
_PLACEHOLDER: Final = re.compile(r"\{[^{}]*\}|%[a-z]")
_DOTS: Final = re.compile(r"(?:\.|%2e){1,2}", re.IGNORECASE)


class CallerTexts:
    """The texts in a call's arguments and answers, and the literal texts in its script."""

    def __init__(self, source: str, values: Iterable[Any]) -> None:
        self._source = source
        self._values = values

    def encode(self, url: str) -> str:
        """Return the address with the caller's texts and all blanks percent-encoded.

        Raises ToolError for a text that would change the host, and for a segment `.` or `..`.
        """
        origin = _ORIGIN.match(url)
        end = origin.end() if origin else 0
        if len(url) > MAX_URL:
            return url  # it is refused later
        literal_spans = [*self._literal_spans(url)]
        for text in _contained(self._texts, url):
            starts = (
                start for start, _ in _occurrences_of(text, url, (0, len(url)), literal_spans)
            )
            if not _LABEL.fullmatch(text) and next(starts, end) < end:
                raise ToolError(f"{text[:100]!r} must not be in the host of the address.")
        end += url.startswith("/", end)
        raw, quoted = [(end, len(url))], [(0, end, url[:end])]
        for text in sorted(_contained(self._structural, url), key=len, reverse=True):
            rest: list[tuple[int, int]] = []
            for part in raw:
                at = part[0]
                for start, stop in _occurrences_of(text, url, part, literal_spans):
                    quoted.append((start, stop, quote(url[start:stop], safe="")))
                    rest.append((at, start))
                    at = stop
                rest.append((at, part[1]))
            raw = rest
        quoted += [
            (at, stop, _BLANK.sub(lambda blank: quote(blank[0]), url[at:stop])) for at, stop in raw
        ]
        written = "".join(text for _, _, text in sorted(quoted))
        path = re.split(r"[?#]", written[end:], maxsplit=1)[0]
        if any(_DOTS.fullmatch(segment) for segment in path.split("/")):
            raise ToolError("A segment of the address must not be '.' or '..'.")
        return written

    def _literal_spans(self, url: str) -> Iterator[tuple[int, int]]:
        """Yield where the address contains a literal text of the script."""
        for literal in self._literals:
            start = url.find(literal)
            while start >= 0:
                yield start, start + len(literal)
                start = url.find(literal, start + 1)

    @cached_property
    def _texts(self) -> frozenset[str]:
        return frozenset(text for text in _texts_in(self._values) if text.strip())

    @cached_property
    def _structural(self) -> tuple[str, ...]:
        return tuple(text for text in self._texts if _STRUCTURAL.search(text))

    @cached_property
    def _literals(self) -> frozenset[str]:
        texts = (
            node.value
            for node in ast.walk(parsed(self._source))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        )
        return frozenset(
            part for text in texts for part in _PLACEHOLDER.split(text) if len(part) > 1
        )


def _contained(texts: Iterable[str], url: str) -> Iterator[str]:
    """Yield the texts that an address contains, ignoring case, apart from its beginning."""
    folded = url.casefold()
    return (text for text in texts if folded.find(text.strip().casefold(), 1) >= 0)


def _occurrences_of(
    text: str, url: str, within: tuple[int, int], literal_spans: Iterable[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Yield where a part of the address contains a text that is not inside a longer literal of the script,
    and that the address does not begin with.

    A `%` in the text does not match `%25`: that text is encoded already.
    """
    pattern = re.compile(re.escape(text.strip()).replace("%", "%(?!25)"), re.IGNORECASE)
    for match in pattern.finditer(url, max(1, within[0]), within[1]):
        start, stop = match.span()
        if not any(a <= start and stop <= b and stop - start < b - a for a, b in literal_spans):
            yield start, stop


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, member in value.items():
            yield name
            yield from _texts_in(member)
    elif isinstance(value, Iterable):
        for member in value:
            yield from _texts_in(member)
