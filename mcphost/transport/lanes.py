"""Cache the result of checking a POST's head, for all requests with the same head.

The caller, its tenant, the Origin, the Host and the media types depend on a few headers that a
client repeats in every request. The result of checking them is a lane. Its key is the slug and
exactly these headers, with their order. It is valid until something that it depends on
changes: the token, its owner's membership, the tenant with its Origins and limits, the settings.
"""

import secrets
from hashlib import blake2b
from typing import Final, NamedTuple

from mcphost.identity.selectors import note_use
from mcphost.runtime.ports import SystemClock
from mcphost.transport.authentication import Admission, marks
from mcphost.transport.options import TransportOptions, options
from mcphost.transport.request import HttpRequest
from mcphost.transport.response import RawHeaders

DECIDING: Final = frozenset(
    {b"host", b"accept", b"content-type", b"content-encoding", b"authorization", b"origin"}
)
"""The headers that admission depends on, except Content-Length."""
LONGEST: Final = 256
"""Bytes of the slug, and of each of these headers but the credential, of which a digest is kept.
Longer heads are checked each time, and so are those with a header twice: no request can fill the
memory with headers."""
MAX_LANES: Final = 16_384

Head = tuple[bytes | str, ...]

_CLOCK = SystemClock()
_SECRET = secrets.token_bytes(32)
_lanes: dict[Head, "Lane"] = {}


class Lane(NamedTuple):
    """The admitted caller of requests with one head, the headers of their responses, and whether Accept
    admits a response with a body."""

    admission: Admission
    headers: RawHeaders
    accepts: bool
    options: TransportOptions


def find(request: HttpRequest) -> Lane | None:
    """The lane of a POST, if it is cached and still valid; notes the use of its token."""
    head = _head(request) if request.method == "POST" else None
    lane = None if head is None else _lanes.get(head)
    if lane is None:
        return None
    now = _CLOCK.now()
    admitted, before, expires_at = lane.admission
    if before != marks() or lane.options is not options():
        return None
    if expires_at is not None and expires_at <= now:
        return None
    if admitted.principal.token_id is not None:
        note_use(admitted.principal.token_id, now)
    return lane


def store(
    request: HttpRequest, admission: Admission, headers: RawHeaders, *, accepts: bool
) -> None:
    """Cache the result of checking a request, if it is a POST."""
    head = _head(request) if request.method == "POST" else None
    if head is None:
        return
    if len(_lanes) >= MAX_LANES:
        _lanes.clear()
    _lanes[head] = Lane(admission, headers, accepts, options())


def _head(request: HttpRequest) -> Head | None:
    """The key of a request, with a keyed digest of the credential; None if it is too long, or has a
    header twice."""
    if len(request.slug) > LONGEST:
        return None
    head: list[bytes | str] = [request.slug]
    for name, value in request.headers.pairs:
        if name in DECIDING:
            if name == b"authorization":
                value = blake2b(value, digest_size=32, key=_SECRET).digest()  # noqa: PLW2901
            if name in head or len(value) > LONGEST:
                return None
            head += (name, value)
    return tuple(head)
