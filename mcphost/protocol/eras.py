"""Which revisions we speak, and which family each belongs to."""

from enum import StrEnum


class Era(StrEnum):
    """Which family of protocol revisions a request speaks (spec: basic/versioning, Terminology)."""

    MODERN = "modern"
    LEGACY = "legacy"


REVISION = "2026-07-28"
"""The stateless revision that this server implements."""

SUPPORTED: tuple[str, ...] = (REVISION,)
"""What `server/discover` and every `-32022` list."""
