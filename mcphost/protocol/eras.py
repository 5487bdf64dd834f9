"""The supported protocol revisions, and the era of each."""

import re
from enum import StrEnum
from typing import Final

from mcphost.protocol.revisions import REVISIONS


class Era(StrEnum):
    """The family of a protocol revision (spec: basic/versioning, Terminology)."""

    MODERN = "modern"
    LEGACY = "legacy"


REVISION = "2026-07-28"
"""The stateless revision that this server implements."""

SUPPORTED: Final[tuple[str, ...]] = (REVISION, *sorted(REVISIONS, reverse=True))
"""All revisions that a tenant's URL supports, newest first: for `server/discover` and every
`-32022`."""

_BEFORE_2026: Final = re.compile(r"(?:20[01]\d|202[0-5])-\d\d-\d\d", re.ASCII)


def era_of(header: str | None) -> Era:
    """Return the era of a message without a version in `_meta`, from its `MCP-Protocol-Version`.

    (A message with a version in `_meta` is modern.) Legacy clients send no header, or a revision
    before 2026. Any other value counts as a mistake of a modern client, which receives a modern
    error.
    """
    return Era.LEGACY if header is None or _BEFORE_2026.fullmatch(header) else Era.MODERN
