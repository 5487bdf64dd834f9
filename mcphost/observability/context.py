"""The request that a log line belongs to."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple
from uuid import UUID


class RequestFacts(NamedTuple):
    """The fields that every log line of a request has.

    `request` is the id of the HTTP request, `tenant` a slug, `trace` the W3C
    trace id in hex.
    """

    request: UUID
    tenant: str
    trace: str


_current: ContextVar[RequestFacts | None] = ContextVar("mcphost_request", default=None)


def bind(request: UUID, tenant: str, trace: str) -> None:
    """Add the request's facts to every line logged from here on, to the end of this task.

    For a task that serves one request and ends with it: there is nothing to reset.
    """
    _current.set(RequestFacts(request, tenant, trace))


@contextmanager
def bound(request: UUID, tenant: str, trace: str) -> Iterator[None]:
    """Add the request's facts to every line logged inside, in tasks and threads too.

    One context variable for all facts, because this runs for every request.
    """
    token = _current.set(RequestFacts(request, tenant, trace))
    try:
        yield
    finally:
        _current.reset(token)


def current() -> RequestFacts | None:
    """The current request; None outside of one."""
    return _current.get()
