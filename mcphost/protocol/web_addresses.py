"""Web addresses in what people are shown (spec: client/elicitation, "Safe URL Handling").

An address that somebody is asked to open has a field of its own, which clients show in full before
they ask for consent. In the texts of a form there must be none: it would be clicked unseen.
"""

import re
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from mcphost.protocol.uris import normalize

_MENTIONED: Final = re.compile(r"https?://|(?<![\w.-])www\.\w", re.IGNORECASE)
_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
"""Hosts that need no encryption: what is sent to them leaves no machine."""


def mentions_one(text: str) -> bool:
    """Whether a text holds what clients would make a link of."""
    return _MENTIONED.search(text) is not None


def why_not(url: Any) -> str | None:
    """What keeps an address from being one that people are asked to open; None if nothing."""
    if not isinstance(url, str):
        return "the address must be a text"
    try:
        normalize(url)
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        return str(error)
    return _problem(parts)


def _problem(parts: SplitResult) -> str | None:
    if parts.scheme not in ("https", "http"):
        return "the address must begin with https://"
    if not parts.hostname:
        return "the address must name a host"
    if "@" in parts.netloc:
        return "the address must not hold the name or the password of a user"
    if parts.scheme == "http" and parts.hostname not in _LOCAL:
        return "the address must begin with https:// (http:// is for localhost only)"
    return None
