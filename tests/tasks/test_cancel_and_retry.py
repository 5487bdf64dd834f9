"""Tasks can be cancelled, and their next round made due at once."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from mcphost.calls.ownership import NO_OWNER
from mcphost.calls.states import QuestionState
from mcphost.feed.models import Change
from mcphost.tasks import services
from mcphost.tasks.changes import CANCELLED, CHANGED, DUE
from mcphost.tasks.models import Task, TaskQuestion
from mcphost.tasks.states import TaskState
from tests.tasks.rows import a_question, a_task

pytestmark = pytest.mark.django_db

TENANT = uuid4()


def announced(task: Task) -> list[str]:
    changes = Change.objects.filter(tenant=TENANT, object_id=task.id.hex)
    return list(changes.order_by("seq").values_list("name", flat=True))


def test_cancelling_a_task_erases_its_contents_and_notifies_clients_and_owner() -> None:
    task = a_task(TENANT, owner=uuid4())
    a_question(task)
    assert services.cancel(task.id, TENANT)
    task.refresh_from_db()
    assert task.state == TaskState.CANCELLED
    assert (task.request, task.journal, task.message, task.outcome) == ("", "", "", "")
    assert (task.owner, task.due_at) == (NO_OWNER, None)
    assert task.nonce != "first"
    assert not TaskQuestion.objects.exists()
    assert announced(task) == [CHANGED, CANCELLED]


@pytest.mark.parametrize("state", [each for each in TaskState if each != TaskState.WORKING])
def test_cancel_and_retry_do_not_change_a_finished_task(state: TaskState) -> None:
    task = a_task(TENANT, state=state, outcome="sealed outcome")
    assert not services.cancel(task.id, TENANT)
    assert not services.retry(task.id, TENANT)
    again = Task.objects.get(id=task.id)
    assert (again.state, again.outcome, again.due_at) == (state, "sealed outcome", None)
    assert announced(task) == []


def test_a_retried_task_is_due_at_once_with_all_attempts_and_only_in_its_own_tenant() -> None:
    later = timezone.now() + timedelta(hours=1)
    task = a_task(TENANT, attempts=4, due_at=later)
    assert not services.cancel(task.id, uuid4())
    assert not services.retry(task.id, uuid4())
    assert announced(task) == []
    assert services.retry(task.id, TENANT)
    task.refresh_from_db()
    assert task.attempts == 0
    assert task.due_at is not None
    assert task.due_at <= timezone.now()
    assert announced(task) == [DUE]
    waits = a_task(TENANT)
    a_question(waits)
    expired = a_task(TENANT, expires_at=timezone.now() - timedelta(seconds=1))
    for other in (a_task(TENANT, owner=uuid4()), waits, expired):
        assert not services.retry(other.id, TENANT)
        assert announced(other) == []


def test_input_requests_are_deleted_with_finished_and_deleted_tasks_only() -> None:
    works = a_question(a_task(TENANT))
    a_question(a_task(TENANT, state=TaskState.CANCELLED), state=QuestionState.ANSWERED)
    gone = a_task(TENANT)
    a_question(gone)
    gone.delete()
    services.prune()
    assert list(TaskQuestion.objects.values_list("id", flat=True)) == [works.id]
