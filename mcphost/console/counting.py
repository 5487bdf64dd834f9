"""How many of each sort a tenant has, and in which states."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from mcphost.catalogue.selectors import PrimitiveRow
from mcphost.catalogue.states import State
from mcphost.console.words import WORDS, Words


@dataclass(frozen=True, slots=True)
class Count:
    """One sort's numbers."""

    words: Words
    published: int
    draft: int
    disabled: int

    @property
    def total(self) -> int:
        return self.published + self.draft + self.disabled

    @property
    def name(self) -> str:
        """As many as are published, in words."""
        return self.words.one if self.published == 1 else self.words.many


def count(rows: Iterable[PrimitiveRow]) -> tuple[Count, ...]:
    """The numbers of every sort, in the order of the menu."""
    found = Counter((row.sort, row.state) for row in rows)
    return tuple(
        Count(
            words,
            published=found[sort, State.PUBLISHED],
            draft=found[sort, State.DRAFT],
            disabled=found[sort, State.DISABLED],
        )
        for sort, words in WORDS.items()
    )
