"""Which request a line of the log belongs to."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """What every line of one request's log carries.

    `request` is the leg (one HTTP request, as in the records), `tenant` a slug, `trace` the W3C
    trace id in hex.
    """

    request: UUID
    tenant: str
    trace: str


_current: ContextVar[RequestFacts | None] = ContextVar("mcphost_request", default=None)


@contextmanager
def bound(request: UUID, tenant: str, trace: str) -> Iterator[None]:
    """Put the request's facts on every line that is logged inside, in tasks and threads too.

    One context variable for all of them: this runs for every request.
    """
    token = _current.set(RequestFacts(request, tenant, trace))
    try:
        yield
    finally:
        _current.reset(token)


def current() -> RequestFacts | None:
    """The request that this code runs for; None outside of one."""
    return _current.get()
