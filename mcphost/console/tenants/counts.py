"""How many primitives of each type a tenant has, by state."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from uuid import UUID

from mcphost.catalogue import selectors
from mcphost.catalogue.selectors import PrimitiveCounts
from mcphost.catalogue.states import PrimitiveState
from mcphost.console.primitive_words import WORDS, Words


@dataclass(frozen=True, slots=True)
class Count:
    """The numbers of one primitive type."""

    words: Words
    published: int
    draft: int
    disabled: int

    @property
    def total(self) -> int:
        """All that are not archived."""
        return self.published + self.draft + self.disabled

    @property
    def name(self) -> str:
        """The type's name, singular or plural to match the published number."""
        return self.words.singular if self.published == 1 else self.words.plural


def counts(tenants: Collection[UUID]) -> Mapping[UUID, tuple[Count, ...]]:
    """Return the numbers of each primitive type by tenant, in the order of the menu."""
    counts_by_tenant = selectors.counts(tenants)
    return {tenant: _counts(counts_by_tenant.get(tenant, {})) for tenant in tenants}


def _counts(primitive_counts: PrimitiveCounts) -> tuple[Count, ...]:
    return tuple(
        Count(
            words,
            published=primitive_counts.get((primitive_type, PrimitiveState.PUBLISHED), 0),
            draft=primitive_counts.get((primitive_type, PrimitiveState.DRAFT), 0),
            disabled=primitive_counts.get((primitive_type, PrimitiveState.DISABLED), 0),
        )
        for primitive_type, words in WORDS.items()
    )
