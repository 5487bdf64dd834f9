"""Notify subscribed clients of their tasks (io.modelcontextprotocol/tasks, "Task Status
Notifications")."""

from collections.abc import Collection, Sequence
from uuid import UUID

from mcphost.feed.loop import ChangeNews
from mcphost.protocol.tasks import TaskView, task_notification
from mcphost.sealing.tokens import SealError
from mcphost.serving import lookups
from mcphost.serving.database import in_database
from mcphost.serving.events import Relay
from mcphost.serving.execution import stored_tasks
from mcphost.serving.replies import server_info
from mcphost.serving.subscriptions.registry import listeners
from mcphost.tasks import selectors
from mcphost.vault.errors import VaultError


class TaskNotices:
    """Reads changed tasks that have subscribers, once for all of them, and notifies these."""

    def __init__(self) -> None:
        self._relay: Relay[UUID | None] = Relay(self._notify_all)

    def start(self) -> None:
        """Notify, on the running loop."""
        self._relay.start()
        listeners.followed = self._begin

    async def stop(self) -> None:
        await self._relay.stop()

    def on_change(self, news: ChangeNews) -> None:
        """A task has changed. From the change log's thread."""
        self._relay.put(UUID(news.object_id))

    def on_gap(self) -> None:
        """Any task may have changed. From the change log's thread."""
        self._relay.put(None)

    def _begin(self, tasks: Collection[UUID]) -> None:
        """Notify of the present state: the task may have changed before the subscription began."""
        for task in tasks:
            self._relay.put(task)

    async def _notify_all(self, changed: Sequence[UUID | None]) -> None:
        tasks = listeners.tasks() if None in changed else dict.fromkeys(changed)
        for task in tasks:
            if task is not None and listeners.of_task(task):
                await _notify_listeners(task)


async def _notify_listeners(task: UUID) -> None:
    view = await _view(task)
    if view is None:
        return
    for listener in listeners.of_task(task):
        if listener.id is not None:
            listener.send_message(task_notification(listener.id, view))


async def _view(task: UUID) -> TaskView | None:
    row = await in_database(selectors.find, task)
    tenant = None if row is None else await lookups.tenant(row.tenant)
    if row is None or tenant is None:
        return None
    try:
        return await stored_tasks.read_view(row, server_info(tenant.title, tenant.icon))
    except (SealError, VaultError) as error:
        stored_tasks.log_unreadable(row, error)
        return None
