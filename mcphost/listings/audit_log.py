"""Entries of the audit log as exports have them, with the slugs of their tenants."""

from typing import Final
from uuid import UUID

from mcphost.audit import selectors
from mcphost.audit.entries import EntryView
from mcphost.audit.selectors import EntryFilter
from mcphost.listings.exports import Row, RowCount, Rows
from mcphost.tenants.selectors import slugs

ENTRY_COLUMNS: Final = (
    "at",
    "tenant",
    "entry",
    "action",
    "actor",
    "actor_kind",
    "actor_id",
    "token",
    "target",
    "outcome",
    "reason",
    "facts",
)
"""The columns of exported entries."""


def exported_entries(filters: EntryFilter, after: UUID | None, limit: int) -> Rows:
    """Return entries after a cursor as an export has them, and the cursor after those."""
    page = selectors.verbs(filters, after=after, limit=limit)
    slug_by_tenant = slugs(entry.tenant for entry in page.entries)
    return [
        _entry_row(entry, slug_by_tenant.get(entry.tenant, "")) for entry in page.entries
    ], page.after


def count_entries(filters: EntryFilter, after: UUID | None, limit: int) -> RowCount:
    """Count the entries that `exported_entries` would return."""
    page = selectors.verbs(filters, after=after, limit=limit)
    return RowCount(len(page.entries), page.after)


def _entry_row(entry: EntryView, slug: str) -> Row:
    return {
        "at": entry.at.isoformat(),
        "tenant": slug,
        "entry": str(entry.id),
        "action": entry.action,
        "actor": entry.actor_label,
        "actor_kind": entry.actor_kind,
        "actor_id": entry.actor_id,
        "token": entry.token_id,
        "target": entry.target,
        "outcome": entry.outcome,
        "reason": entry.reason,
        "facts": entry.facts,
    }
