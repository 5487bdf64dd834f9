"""Ports of a round: notifications, the tenant's store, the thread pool."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import Error

from mcphost.catalogue import store
from mcphost.protocol import messages
from mcphost.runtime.ports import NullNotifier, Stored, StoreRefused
from mcphost.runtime.threads import ToolThreads
from mcphost.serving.database import in_database, in_database_once
from mcphost.serving.ports import EventStream

NULL_NOTIFIER = NullNotifier()


class StreamNotifier:
    """Writes notifications to the stream. Only for the event loop's thread."""

    def __init__(self, stream: EventStream, token: str | int | None, minimum: str | None) -> None:
        self._stream = stream
        self._token = token
        self._minimum = minimum

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        if self._token is not None:
            self._stream.send(messages.progress(self._token, progress, total, message))

    def log(self, level: str, data: Any, logger: str | None) -> None:
        if self._minimum is not None and messages.wants(level, self._minimum):
            self._stream.send(messages.log_message(level, data, logger))


log = logging.getLogger(__name__)


class TenantStore:
    """Implements `runtime.ports.Store` for the calls of one tenant, without access to others."""

    __slots__ = ("_tenant",)

    def __init__(self, tenant: UUID) -> None:
        self._tenant = tenant

    async def get(self, key: str) -> Stored:
        with _reaching():
            return await in_database(store.get, self._tenant, key)

    async def put(self, key: str, value: Any, revision: int) -> bool:
        with _reaching():  # run twice, it would look like a conflict
            return await in_database_once(store.put, self._tenant, key, value, revision)

    async def delete(self, key: str, revision: int) -> bool:
        with _reaching():
            return await in_database_once(store.delete, self._tenant, key, revision)


@contextmanager
def _reaching() -> Iterator[None]:
    try:
        yield
    except Error as error:
        log.error("the store cannot be reached: %s", type(error).__name__)
        raise StoreRefused("The store cannot be reached at the moment; try again soon.") from None


@cache
def threads() -> ToolThreads:
    """The thread pool of this process, limited per tenant by `MCPHOST_THREADS_PER_TENANT`."""
    return ToolThreads(settings.MCPHOST_THREADS_PER_TENANT)
