"""Which request a line of the log belongs to."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple
from uuid import UUID


class RequestFacts(NamedTuple):
    """What every line of one request's log carries.

    `request` is the leg (one HTTP request, as in the records), `tenant` a slug, `trace` the W3C
    trace id in hex.
    """

    request: UUID
    tenant: str
    trace: str


_current: ContextVar[RequestFacts | None] = ContextVar("mcphost_request", default=None)


def bind(request: UUID, tenant: str, trace: str) -> None:
    """Put the request's facts on every line logged from here on, to the end of this task.

    For a task that serves one request and ends with it: there is nothing to put back.
    """
    _current.set(RequestFacts(request, tenant, trace))


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
