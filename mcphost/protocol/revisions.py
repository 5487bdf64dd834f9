"""The supported protocol revisions: the era of each, and the features of those with sessions."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class Revision:
    """One session-based revision and its features.

    `batches`: several messages in one POST. `structured`: output schemas, structured content,
    titles, resource links, `_meta` everywhere, and the context of a completion request.
    `elicitation`: flat form questions to the user; `rich_forms`: titled and multiple choices, and a
    default for every field; `urls`: URL-mode questions. `icons`: on all list entries.
    `sampling_tools`: tools and several content blocks in sampling. `polling`: streams begin with an
    event that can be resumed from, and may be closed early. `header`: clients send the revision in
    a header with every request after the first. `tasks`: requests that become tasks, which were experimental. `audio`:
    audio content, and what came with it: hints on tools, and the message of a progress notification.
    """

    name: str
    batches: bool = False
    structured: bool = True
    elicitation: bool = True
    rich_forms: bool = False
    urls: bool = False
    icons: bool = False
    sampling_tools: bool = False
    polling: bool = False
    header: bool = True
    tasks: bool = False
    audio: bool = True


_ALL: Final = (
    Revision("2024-11-05", structured=False, elicitation=False, header=False, audio=False),
    Revision("2025-03-26", batches=True, structured=False, elicitation=False, header=False),
    Revision("2025-06-18"),
    Revision(
        "2025-11-25",
        rich_forms=True,
        urls=True,
        icons=True,
        sampling_tools=True,
        polling=True,
        tasks=True,
    ),
)

REVISIONS: Final[Mapping[str, Revision]] = MappingProxyType(
    {revision.name: revision for revision in _ALL}
)

LATEST_LEGACY: Final = _ALL[-1]
"""The revision that is offered to a client that requests a newer one, or no revision at all."""

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def negotiate(requested: str) -> Revision:
    """Return the revision of a new session (spec: basic/lifecycle, Version Negotiation).

    A client that requests an unsupported revision gets the newest before it: clients know the revisions
    before their own, and none of the later ones. One that is older than all gets the oldest.
    """
    if not _DATE.fullmatch(requested):
        return LATEST_LEGACY
    return next((revision for revision in reversed(_ALL) if revision.name <= requested), _ALL[0])


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
