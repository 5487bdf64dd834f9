"""The port through which `catalogue` says which published primitives use a secret."""

from collections.abc import Callable, Sequence
from uuid import UUID

PublishedUses = Callable[[UUID, str], Sequence[str]]
"""Tenant and name of a secret to the names of the published primitives that use it."""


class _PublishedUses:
    find: PublishedUses | None = None


def set_published_uses(find: PublishedUses | None) -> None:
    """Set the function, once, at start-up."""
    _PublishedUses.find = find


def published_uses(tenant_id: UUID, name: str) -> Sequence[str]:
    """Return the names of the published primitives that use a secret; none before it was set."""
    return () if _PublishedUses.find is None else _PublishedUses.find(tenant_id, name)
