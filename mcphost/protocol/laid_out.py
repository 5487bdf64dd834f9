"""A URI laid out as bits, so that all places in it are dealt with at once.

A set of places is a number: its bit b stands for the place that b characters follow. A character
has the bit of the place behind it. What would take a step for each character takes one operation
on numbers of two thousand bits.
"""

from functools import lru_cache
from typing import Final

_BYTES: Final = 256

Characters = frozenset[str] | str
Places = int


class LaidOut:
    """A URI (ASCII), to be held against many templates: what was found out of it is kept."""

    __slots__ = ("_bits", "size", "uri")

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.size = len(uri)
        self._bits: dict[Characters, Places] = {}

    def place(self, at: int) -> Places:
        """The place before the character `at`."""
        return 1 << (self.size - at)

    def before(self, text: str, places: Places) -> Places:
        """Where `text` stands so that it ends at one of `places`."""
        found = places << len(text)
        for number, character in enumerate(text, start=1):
            if not found:
                break
            found &= self._all(character) << number
        return found

    def reaching(self, characters: Characters, places: Places) -> Places:
        """From where at least one of `characters`, and nothing else, leads to one of `places`.

        Adding carries from the last character of each run to its first.
        """
        allowed = self._all(characters)
        last = places & allowed
        return ((((allowed + last) ^ allowed) | last) & allowed) << 1

    def furthest(self, start: int, characters: Characters, places: Places) -> int | None:
        """The last of `places` to which at least one of `characters` leads from `start` on."""
        behind = self.place(start) - 1
        barrier = (behind & ~self._all(characters)).bit_length()
        reached = (places & behind) >> barrier
        if not reached:
            return None
        return self.size - barrier - (reached & -reached).bit_length() + 1

    def _all(self, characters: Characters) -> Places:
        """Every character of the URI that is one of these."""
        bits = self._bits.get(characters)
        if bits is None:
            bits = int(self.uri.encode("ascii").translate(_ones(characters)), 2)
            self._bits[characters] = bits
        return bits


@lru_cache(maxsize=_BYTES)
def _ones(characters: Characters) -> bytes:
    return bytes(ord("1" if chr(code) in characters else "0") for code in range(_BYTES))
