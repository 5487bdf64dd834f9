"""Tasks for display: pages, filters, counts."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from mcphost.calls.states import QuestionState
from mcphost.tasks import listing
from mcphost.tasks.listing import FAILED_RECENTLY, STATUSES, WAITING, TaskTally, WorkingTasks
from mcphost.tasks.models import Task
from mcphost.tasks.states import TaskState
from tests.tasks.rows import a_question, a_task

pytestmark = pytest.mark.django_db

TENANT, OTHER = uuid4(), uuid4()
NOW = timezone.now()


def test_the_newest_tasks_come_first_in_pages_that_link_in_both_directions() -> None:
    calls = [
        a_task(TENANT, created_at=NOW - timedelta(seconds=age)).call for age in (4, 3, 2, 2, 1)
    ]
    a_task(OTHER)
    first = listing.page(TENANT, limit=2)
    second = listing.page(TENANT, after=first.after, limit=2)
    last = listing.page(TENANT, after=second.after, limit=2)
    seen = [each.call for page in (first, second, last) for each in page.tasks]
    assert len(seen) == 5
    assert set(seen) == set(calls)
    assert (seen[0], seen[3:]) == (calls[4], [calls[1], calls[0]])
    assert (first.before, last.after) == (None, None)
    back = listing.page(TENANT, before=last.before, limit=2)
    assert back == second
    assert listing.page(TENANT, before=back.before, limit=2) == first


def test_filtering_by_status_returns_its_tasks() -> None:
    tasks = {str(state): a_task(TENANT, state=state).call for state in TaskState}
    asks = a_task(TENANT)
    a_question(asks)
    tasks[WAITING] = asks.call
    assert set(tasks) == set(STATUSES) - {FAILED_RECENTLY}
    long_ago = a_task(TENANT, state=TaskState.FAILED)
    Task.objects.filter(pk=long_ago.pk).update(updated_at=NOW - timedelta(days=2))
    recent = [each.call for each in listing.page(TENANT, FAILED_RECENTLY).tasks]
    assert recent == [tasks["failed"]]
    assert listing.tallies(None)[TENANT].failed == 1
    long_ago.delete()
    for status, call in tasks.items():
        assert [each.call for each in listing.page(TENANT, status).tasks] == [call], status
    assert {each.call: each.status for each in listing.page(TENANT).tasks} == {
        call: status for status, call in tasks.items()
    }


def test_an_expired_task_is_not_listed_or_counted() -> None:
    task = a_task(TENANT, expires_at=NOW - timedelta(seconds=1))
    a_question(task)
    assert listing.page(TENANT).tasks == ()
    assert listing.of_call(task.call, TENANT) is None
    assert listing.open_questions([task.call]) == frozenset()
    assert listing.tallies(None) == {}
    assert listing.count_working() == WorkingTasks(0, 0, 0)


def test_a_task_is_found_by_its_call_with_its_input_requests_in_its_own_tenant_only() -> None:
    task = a_task(TENANT)
    a_question(task, state=QuestionState.ANSWERED)
    ships = a_task(TENANT, tool="ship")
    found = listing.of_call(task.call, TENANT)
    assert found is not None
    assert (found.id, found.status, found.open) == (task.id, "working", ())
    assert [each.key for each in found.questions] == ["colour"]
    assert listing.of_call(task.call, OTHER) is None
    assert [each.call for each in listing.page(TENANT, tool="ship").tasks] == [ships.call]
    a_question(ships, "colour#2", author_key="colour")
    a_question(ships, "size", state=QuestionState.EXPIRED)
    open_questions = listing.open_questions([task.call, ships.call])
    assert open_questions == {(ships.call, "colour")}, "they are known by the author's key"


def test_tasks_are_counted_per_tenant_and_failures_of_the_last_day_only() -> None:
    a_task(TENANT, due_at=NOW)
    waits = a_task(TENANT)
    a_question(waits)
    a_question(waits, "size")
    a_task(TENANT, state=TaskState.FAILED)
    a_task(TENANT, state=TaskState.FAILED, updated_at=NOW - timedelta(days=2))
    a_task(TENANT, state=TaskState.COMPLETED)
    a_task(OTHER)
    own = TaskTally(working=1, waiting=1, failed=1)
    assert listing.tallies(None) == {TENANT: own, OTHER: TaskTally(working=1)}
    assert listing.tallies(frozenset({TENANT})) == {TENANT: own}
    assert listing.count_working() == WorkingTasks(working=3, waiting=1, due=1)


def test_open_input_requests_are_counted_by_tenant_tool_and_age() -> None:
    now = timezone.now()
    first, second, ended = (
        a_task(TENANT, tool="a"),
        a_task(OTHER, tool="b"),
        a_task(TENANT, tool="a"),
    )
    a_question(first, "x", expires_at=now + timedelta(minutes=3))
    a_question(first, "y")
    a_question(first, "z", state=QuestionState.ANSWERED)
    a_question(second)
    a_question(ended)
    Task.objects.filter(pk=ended.pk).update(state=TaskState.CANCELLED)
    assert listing.count_open_questions(None) == 3
    assert listing.count_open_questions({TENANT}) == 2
    assert listing.count_open_questions({TENANT}, tool="b") == 0
    assert listing.count_open_questions(None, tool="a", until=now + timedelta(minutes=5)) == 1
