"""How many primitives of each type a tenant has, by state."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from uuid import UUID

from mcphost.catalogue import selectors
from mcphost.catalogue.selectors import PrimitiveCounts
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
    def name(self) -> str:
        """The type's name, singular or plural to match the published number."""
        return self.words.one if self.published == 1 else self.words.many


def counts(tenants: Collection[UUID]) -> Mapping[UUID, tuple[Count, ...]]:
    """Return the numbers of each primitive type by tenant, in the order of the menu."""
    found = selectors.counts(tenants)
    return {tenant: _counts(found.get(tenant, {})) for tenant in tenants}


def _counts(found: PrimitiveCounts) -> tuple[Count, ...]:
    return tuple(
        Count(
            words,
            published=found.get((sort, PrimitiveState.PUBLISHED), 0),
            draft=found.get((sort, PrimitiveState.DRAFT), 0),
            disabled=found.get((sort, PrimitiveState.DISABLED), 0),
        )
        for sort, words in WORDS.items()
    )
