"""Frozen copies of rows of the record."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from mcphost.audit.models import Entry

UNKNOWN = "unknown"
"""The outcome of a round that was started and has no entry of its end."""


@dataclass(frozen=True, slots=True)
class EntryView:
    """One entry as it was written; its columns are those of `models.Entry`."""

    id: UUID
    at: datetime
    tenant: UUID | None
    call: UUID | None
    http_request_id: UUID | None
    round: int | None
    duration_us: int | None
    bytes_in: int | None
    bytes_out: int | None
    action: str
    actor_kind: str
    actor_id: str
    actor_label: str
    token_id: str
    method: str
    target: str
    target_version: str
    revision: str
    era: str
    delivery: str
    client_name: str
    client_version: str
    outcome: str
    reason: str
    source: str
    trace_id: str
    facts: Mapping[str, Any]
    commitment: bytes | None


@dataclass(frozen=True, slots=True)
class PayloadView:
    """The payload of one entry: `content` (JSON), or why it cannot be read.

    If erased: `erased_at` and `erased_by`. If unreadable for another reason: `problem`. `left_out`: it
    was not read, because too much had been read with it.
    """

    entry: UUID
    content: Any = None
    erased_at: datetime | None = None
    erased_by: str = ""
    problem: str = ""
    left_out: bool = False


def view(row: Entry) -> EntryView:
    """Make the frozen copy of a row."""
    values = {name: getattr(row, name) for name in EntryView.__dataclass_fields__}
    values["commitment"] = None if row.commitment is None else stored_bytes(row.commitment)
    return EntryView(**values)


def stored_bytes(value: object) -> bytes:
    """Return the value of a binary column; empty if it was changed to a text or a number, which SQLite
    stores too."""
    return bytes(value) if isinstance(value, bytes | memoryview) else b""
