"""How many primitives of each type a tenant has, by state."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from mcphost.catalogue.selectors import PrimitiveRow
from mcphost.catalogue.states import PrimitiveState
from mcphost.console.words import WORDS, Words


@dataclass(frozen=True, slots=True)
class Count:
    """The numbers of one primitive type."""

    words: Words
    published: int
    draft: int
    disabled: int

    @property
    def total(self) -> int:
        return self.published + self.draft + self.disabled

    @property
    def name(self) -> str:
        """The type's name, singular or plural to match the published number."""
        return self.words.one if self.published == 1 else self.words.many


def count(rows: Iterable[PrimitiveRow]) -> tuple[Count, ...]:
    """Return the numbers of each primitive type, in the order of the menu."""
    found = Counter((row.sort, row.state) for row in rows)
    return tuple(
        Count(
            words,
            published=found[sort, PrimitiveState.PUBLISHED],
            draft=found[sort, PrimitiveState.DRAFT],
            disabled=found[sort, PrimitiveState.DISABLED],
        )
        for sort, words in WORDS.items()
    )
