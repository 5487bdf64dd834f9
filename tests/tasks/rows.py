"""Rows of tasks and of their questions, as the server would write them."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.utils import timezone

from mcphost.audit.records import new_id
from mcphost.calls.ownership import LEASE, NO_OWNER
from mcphost.calls.states import QuestionState
from mcphost.feed.models import Node
from mcphost.tasks.models import Task, TaskQuestion
from mcphost.tasks.states import TaskState

SECRET = "sealed-text-of-a-client"
LONG_AGO = LEASE + timedelta(seconds=1)


def a_task(tenant: UUID, call: UUID | None = None, **columns: Any) -> Task:
    """Write a task that works, which no process runs and that waits for nothing."""
    now = timezone.now()
    values = {
        "id": uuid4(),
        "principal_key": "token:1",
        "holder": "holder",
        "era": "modern",
        "tool": "paint",
        "state": TaskState.WORKING,
        "request": SECRET,
        "message": SECRET,
        "journal": SECRET,
        "round": 1,
        "owner": NO_OWNER,
        "epoch": 1,
        "nonce": "first",
        "taken_at": now,
        "created_at": now,
        "updated_at": now,
        "expires_at": now + timedelta(hours=24),
        **columns,
    }
    return Task.objects.create(tenant=tenant, call=call or new_id(), **values)


def a_question(task: Task, key: str = "colour", **columns: Any) -> TaskQuestion:
    """Write a question of a task; by default it is open."""
    now = timezone.now()
    values = {
        "id": new_id(),
        "author_key": key,
        "digest": "digest",
        "method": "elicitation/create",
        "request": SECRET,
        "round": 1,
        "state": QuestionState.OPEN,
        "asked_at": now,
        "expires_at": now + timedelta(minutes=30),
        **columns,
    }
    return TaskQuestion.objects.create(task=task.id, key=key, **values)


def process(name: str, *, dead: bool = False) -> UUID:
    """A process with a heartbeat: one of now, or one of minutes ago."""
    now = timezone.now()
    seen = now - timedelta(minutes=5) if dead else now
    return Node.objects.create(id=uuid4(), name=name, started_at=seen, seen_at=seen).id
