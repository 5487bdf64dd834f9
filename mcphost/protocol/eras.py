"""Which revisions we speak, and which family each belongs to."""

import re
from enum import StrEnum
from typing import Final


class Era(StrEnum):
    """Which family of protocol revisions a request speaks (spec: basic/versioning, Terminology)."""

    MODERN = "modern"
    LEGACY = "legacy"


REVISION = "2026-07-28"
"""The stateless revision that this server implements."""

SUPPORTED: tuple[str, ...] = (REVISION,)
"""What `server/discover` and every `-32022` list."""

UNNAMED_REVISION: Final = "2025-03-26"
"""What a request without a version header speaks (streamable-http, "Protocol Version Header")."""

_BEFORE_2026: Final = re.compile(r"(?:20[01]\d|202[0-5])-\d\d-\d\d", re.ASCII)


def era_of(header: str | None) -> Era:
    """The era of a message whose `_meta` names no version, from its `MCP-Protocol-Version`.

    (One that names a version there is modern.) Legacy clients send no header, or one of a
    revision before 2026. Whatever else is odd is a modern client's mistake, and is told so.
    """
    return Era.LEGACY if header is None or _BEFORE_2026.fullmatch(header) else Era.MODERN
