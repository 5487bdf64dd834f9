"""Redirect URIs: which ones a client may have, and which one a request may name.

Specification: RFC 6749 section 3.1.2, RFC 8252 sections 7 and 8.4, RFC 9700 section 2.1.
"""

import re
from collections.abc import Iterable
from typing import Final

from mcphost.egress.addresses import PORTS, Target
from mcphost.egress.errors import EgressRequestError

MAX_LENGTH: Final = 2_000
PRIVATE_USE_SCHEMES: Final = frozenset(
    {
        "cursor",  # Cursor has no metadata document, and registers cursor://anysphere.cursor-mcp/…
        "vscode",  # extensions of VS Code get what their editor's scheme opens
        "vscode-insiders",  # the same editor before a release
    }
)
"""Schemes that open one well-known application each. Another application may claim them on a person's
machine (RFC 8252 section 8.4), so that only those are listed whose clients need them; PKCE protects the code."""

_FAULTS: Final = (
    (re.compile(r"[^A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]"), "has characters that no URI has"),
    (re.compile(r"^(?!([A-Za-z][A-Za-z0-9+.-]*):)"), "is not absolute"),
    (re.compile(r"\*"), "has a wildcard: list every URI in full"),
    (re.compile(r"#"), "has a fragment"),
    (re.compile(r"^[^?]*/(\.|%2e){1,2}([/?]|$)", re.IGNORECASE), "has dot segments in its path"),
)
_LOOPBACK: Final = re.compile(
    r"http://(?P<host>127\.0\.0\.1|\[::1\]|localhost)(?::(?P<port>[0-9]{1,5}))?(?P<rest>[/?].*)?"
)
_APPLICATION: Final = re.compile(
    rf"((?:{'|'.join(PRIVATE_USE_SCHEMES)})://[a-z0-9][a-z0-9.-]*)(?:[/?].*)?"
)


def matches(registered: Iterable[str], presented: str) -> bool:
    """Return whether a client may be redirected to this URI: one that it declared, character by character.

    Of http URIs with a loopback host the port may differ (RFC 8252 section 7.3): a native application
    listens on any that is free.
    """
    loopback = _without_port(presented)
    return any(
        uri == presented or (loopback is not None and _without_port(uri) == loopback)
        for uri in registered
    )


def is_loopback(uri: str) -> bool:
    """Return whether a program on the person's own machine receives the redirect."""
    return _without_port(uri) is not None


def problem(uri: str) -> str | None:
    """Return why no client may have this redirect URI, as the end of a sentence; None if one may."""
    if len(uri) > MAX_LENGTH:
        return f"has more than {MAX_LENGTH} characters"
    for pattern, fault in _FAULTS:
        if pattern.search(uri):
            return fault
    scheme = uri.partition(":")[0]
    if scheme in PRIVATE_USE_SCHEMES:
        return None if _APPLICATION.fullmatch(uri) else "names no application after its scheme"
    if scheme not in PORTS:
        return "has a scheme other than https, http for loopback, or one of a listed application"
    try:
        Target.parse(uri)
    except EgressRequestError as error:
        return f"is malformed: {str(error).rstrip('.')}"
    if scheme == "http" and not is_loopback(uri):
        return "is http, which is for 127.0.0.1, [::1] and localhost only: use https"
    return None


def host_of(uri: str) -> str:
    """Return what receives the redirect, for people: host and port, or the scheme of an application.

    The URI is one without a `problem`.
    """
    application = _APPLICATION.fullmatch(uri)
    return application[1] if application is not None else Target.parse(uri).authority


def _without_port(uri: str) -> tuple[str, str] | None:
    """Return host and rest of a loopback URI; None for every other one."""
    parts = _LOOPBACK.fullmatch(uri)
    if parts is None or not 0 < int(parts["port"] or 80) < 65_536:
        return None
    return parts["host"], parts["rest"] or ""
