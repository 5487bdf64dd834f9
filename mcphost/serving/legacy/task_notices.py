"""Notify sessions of the tasks that they made (2025-11-25: basic/utilities/tasks, "Task Status
Notification" and "Task Progress Notifications").

The registry of listeners hands over changes in the order of the change log, among the opening and
closing of GET streams. So all processes agree which stream is the newest at each change, and only
the process that has it reads the task.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from mcphost.feed.loop import ChangeNews
from mcphost.protocol.legacy import tasks as written
from mcphost.protocol.tasks import TaskView
from mcphost.sealing.tokens import SealError
from mcphost.serving import lookups, policy
from mcphost.serving.database import in_database
from mcphost.serving.events import Relay
from mcphost.serving.execution import stored_tasks
from mcphost.serving.legacy.get_stream import NOTHING_SENT, SentTask, SessionStream, get_streams
from mcphost.serving.replies import server_info
from mcphost.tasks import selectors
from mcphost.tasks.changes import PROGRESS
from mcphost.tasks.selectors import TaskRow
from mcphost.vault.errors import VaultError

REMEMBERED: Final = 1000
"""Of how many tasks a stream remembers what it has sent, so that it sends no state twice."""


class TaskChange(NamedTuple):
    """A changed task, the stream that was the newest of its session then, and the kind of change."""

    task: UUID
    stream: SessionStream
    kind: str


class SessionTaskNotices:
    """Reads changed tasks of sessions with a GET stream here, and notifies their clients.

    Tasks are read one after the other, so that a stream never gets an older state after a newer one.
    """

    def __init__(self) -> None:
        self._relay: Relay[TaskChange] = Relay(self._notify)

    def start(self) -> None:
        """Notify, on the running loop."""
        self._relay.start()

    async def stop(self) -> None:
        await self._relay.stop()

    async def changed(self, news: Sequence[ChangeNews]) -> None:
        """Find the streams of changed tasks. For the registry of listeners."""
        if not len(get_streams):
            return
        tasks = {change: UUID(change.object_id) for change in news}
        sessions = await in_database(selectors.sessions_of, set(tasks.values()))
        for change, task in tasks.items():
            stream = get_streams.newest(sessions[task]) if task in sessions else None
            if stream is not None:
                self._relay.put(TaskChange(task, stream, change.kind))

    async def _notify(self, changes: Sequence[TaskChange]) -> None:
        for task in dict.fromkeys(change.task for change in changes):
            row = await in_database(selectors.find, task)
            if row is not None:
                await _notify_of_task(row, [change for change in changes if change.task == task])


async def _notify_of_task(row: TaskRow, changes: Sequence[TaskChange]) -> None:
    """Send the state of a task, or its progress, on the streams of these changes."""
    tenant = await lookups.tenant(row.tenant)
    if tenant is None:
        return
    try:
        view = await stored_tasks.read_view(row, server_info(tenant.title, tenant.icon))
        progress = await stored_tasks.read_progress(row)
    except (SealError, VaultError) as error:
        stored_tasks.log_unreadable(row, error)
        return
    for change in changes:
        if not _may_know(change.stream, row):
            continue
        if change.kind != PROGRESS:
            _tell_status(change.stream, row.id, view)
        elif progress is not None:
            _tell_progress(change.stream, row.id, progress)


def _may_know(stream: SessionStream, row: TaskRow) -> bool:
    """Whether the task is of the stream's session and caller, who may still call tools."""
    is_own = (row.session, row.principal_key) == (stream.session.id, stream.session.principal_key)
    return is_own and stream.principal.may(policy.CALL)


def _tell_status(stream: SessionStream, task: UUID, view: TaskView) -> None:
    state = (view.status, view.message)
    sent = stream.sent_states.get(task, NOTHING_SENT)
    if sent.state != state:
        _remember(stream, task, sent._replace(state=state))
        stream.send_message(written.status_notification(view))


def _tell_progress(stream: SessionStream, task: UUID, progress: written.TaskProgress) -> None:
    sent = stream.sent_states.get(task, NOTHING_SENT)
    if sent.progress is None or progress.progress > sent.progress:
        _remember(stream, task, sent._replace(progress=progress.progress))
        stream.send_message(written.progress_notification(task.hex, progress))


def _remember(stream: SessionStream, task: UUID, sent: SentTask) -> None:
    stream.sent_states[task] = sent
    if len(stream.sent_states) > REMEMBERED:
        del stream.sent_states[next(iter(stream.sent_states))]
