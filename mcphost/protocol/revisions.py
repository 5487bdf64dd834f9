"""The session-based revisions that we speak, and what each of them has, as a table."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final


@dataclass(frozen=True, slots=True)
class Revision:
    """One session-based revision, and what it can carry.

    `batches`: several messages in one POST. `structured`: output schemas, structured content, titles,
    links to resources, `_meta` everywhere, what is known already when a completion is asked for.
    `elicitation`: questions to the user by forms, flat and plain; `rich_forms`: titled and multiple
    choices, and a default for every field; `urls`: questions at an address. `icons`: on everything
    that is listed. `sampling_tools`: tools and several blocks of content in sampling. `polling`:
    streams begin with an event that can be resumed from, and may be closed early. `header`: clients
    name the revision in every request after the first. `errors_without_id`: an error may answer what
    had no `id` that could be read.
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
    errors_without_id: bool = False


_ALL: Final = (
    Revision("2025-03-26", batches=True, structured=False, elicitation=False, header=False),
    Revision("2025-06-18"),
    Revision(
        "2025-11-25",
        rich_forms=True,
        urls=True,
        icons=True,
        sampling_tools=True,
        polling=True,
        errors_without_id=True,
    ),
)

REVISIONS: Final[Mapping[str, Revision]] = MappingProxyType({one.name: one for one in _ALL})

LATEST_LEGACY: Final = _ALL[-1]
"""What a client is offered that asks for a revision which we do not speak."""


def negotiate(requested: str) -> Revision:
    """The revision of a new session (spec: basic/lifecycle, Version Negotiation)."""
    return REVISIONS.get(requested, LATEST_LEGACY)
