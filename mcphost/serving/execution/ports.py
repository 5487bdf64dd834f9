"""Ports of a round: notifications, the tenant's store, the thread pool."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Protocol
from uuid import UUID

from django.conf import settings
from django.db import Error

from mcphost.catalogue import store
from mcphost.protocol import messages
from mcphost.protocol.legacy.tasks import TaskProgress
from mcphost.runtime.ports import Notifier, NullNotifier, Stored, StoreRefusedError
from mcphost.runtime.threads import ToolThreads
from mcphost.serving.database import in_database, in_database_once
from mcphost.serving.ports import EventStream

NULL_NOTIFIER = NullNotifier()


class StreamNotifier:
    """Writes notifications to the stream. Only for the event loop's thread.

    Without `texts`, the client's revision has no message in a progress notification.
    """

    def __init__(
        self,
        stream: EventStream,
        token: str | int | None,
        minimum: str | None,
        *,
        texts: bool = True,
    ) -> None:
        self._stream = stream
        self._token = token
        self._minimum = minimum
        self._texts = texts

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        if self._token is not None:
            text = message if self._texts else None
            self._stream.send(messages.progress(self._token, progress, total, text))

    def log(self, level: str, data: Any, logger: str | None) -> None:
        if self._minimum is not None and messages.wants(level, self._minimum):
            self._stream.send(messages.log_message(level, data, logger))


class DescribedTask(Protocol):
    """A task whose status message and progress can be set."""

    def describe(self, message: str | None, progress: TaskProgress | None = None) -> None: ...


class TaskNotifier:
    """The notifications of a call that is a task, or may become one while its round runs.

    A task sends no progress and no log messages (spec: io.modelcontextprotocol/tasks, "Task Status
    Notifications"): what a program reports about its progress becomes the status message. With a
    `token`, it is also stored as progress (2025-11-25: basic/utilities/progress).
    """

    def __init__(
        self,
        plain: Notifier,
        task: Callable[[], DescribedTask | None],
        token: str | int | None = None,
    ) -> None:
        self._plain = plain
        self._task = task
        self._token = token

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        task = self._task()
        if task is None:
            self._plain.progress(progress, total, message)
        elif self._token is not None:
            report = TaskProgress(self._token, progress, total, message or None)
            task.describe(message or None, report)
        elif message:
            task.describe(message)

    def log(self, level: str, data: Any, logger: str | None) -> None:
        if self._task() is None:
            self._plain.log(level, data, logger)


class TaskStream:
    """The stream of a request whose call may become a task. A task has no stream: nothing is sent
    then, and it is never closed."""

    def __init__(self, stream: EventStream, is_task: Callable[[], bool]) -> None:
        self._stream = stream
        self._is_task = is_task

    @property
    def closed(self) -> bool:
        return not self._is_task() and self._stream.closed

    def send(self, message: bytes) -> None:
        if not self._is_task():
            self._stream.send(message)


log = logging.getLogger(__name__)


class TenantStore:
    """Implements `runtime.ports.Store` for the calls of one tenant, or for those of one `member` of
    it, without access to others."""

    __slots__ = ("_owner",)

    def __init__(self, tenant: UUID, member: UUID | None = None) -> None:
        self._owner = store.StoreOwner(tenant, member)

    async def get(self, key: str) -> Stored:
        with _reaching():
            return await in_database(store.get, self._owner, key)

    async def put(self, key: str, value: Any, revision: int) -> bool:
        with _reaching():  # run twice, it would look like a conflict
            return await in_database_once(store.put, self._owner, key, value, revision)

    async def delete(self, key: str, revision: int) -> bool:
        with _reaching():
            return await in_database_once(store.delete, self._owner, key, revision)


@contextmanager
def _reaching() -> Iterator[None]:
    try:
        yield
    except Error as error:
        log.error("the store cannot be reached: %s", type(error).__name__)
        raise StoreRefusedError(
            "The store cannot be reached at the moment; try again soon."
        ) from None


@cache
def threads() -> ToolThreads:
    """The thread pool of this process, limited per tenant by `MCPHOST_THREADS_PER_TENANT`."""
    return ToolThreads(settings.MCPHOST_THREADS_PER_TENANT)
