"""Bit sets of positions in a URI, so that all positions are processed at once.

A set of positions is an integer: bit b stands for the position that b characters follow. A
character has the bit of the position after it. One operation on integers of two thousand bits
replaces one step per character.
"""

from functools import lru_cache
from typing import Final

_BYTES: Final = 256

Characters = frozenset[str] | str
Positions = int


class UriPositions:
    """A URI (ASCII) to be matched against many templates; computed bit sets are cached."""

    __slots__ = ("_bits", "size", "uri")

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self.size = len(uri)
        self._bits: dict[Characters, Positions] = {}

    def position(self, at: int) -> Positions:
        """Return the position before the character `at`."""
        return 1 << (self.size - at)

    def before(self, text: str, ends: Positions) -> Positions:
        """Return the positions where `text` begins so that it ends at one of `ends`."""
        starts = ends << len(text)
        for number, character in enumerate(text, start=1):
            if not starts:
                break
            starts &= self._all(character) << number
        return starts

    def reaching(self, characters: Characters, ends: Positions) -> Positions:
        """Return the positions from which at least one of `characters`, and nothing else, leads to
        `ends`.

        The addition carries from the last character of each run to its first.
        """
        allowed = self._all(characters)
        last = ends & allowed
        return ((((allowed + last) ^ allowed) | last) & allowed) << 1

    def furthest(self, start: int, characters: Characters, ends: Positions) -> int | None:
        """Return the last of `ends` that at least one of `characters` from `start` on leads to."""
        behind = self.position(start) - 1
        barrier = (behind & ~self._all(characters)).bit_length()
        reached = (ends & behind) >> barrier
        if not reached:
            return None
        return self.size - barrier - (reached & -reached).bit_length() + 1

    def _all(self, characters: Characters) -> Positions:
        """Return the set of all occurrences of these characters in the URI."""
        bits = self._bits.get(characters)
        if bits is None:
            bits = int(self.uri.encode("ascii").translate(_ones(characters)), 2)
            self._bits[characters] = bits
        return bits


@lru_cache(maxsize=_BYTES)
def _ones(characters: Characters) -> bytes:
    return bytes(ord("1" if chr(code) in characters else "0") for code in range(_BYTES))
