"""Limits of working tasks, as the database counts them when calls become tasks."""

from datetime import timedelta
from typing import Final
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from mcphost.audit.records import new_id
from mcphost.audit.writer.conditions import Condition
from mcphost.audit.writer.writer import Writer
from mcphost.tasks import changes
from mcphost.tasks.changes import MaxTasks, NewTask
from mcphost.tasks.models import Task
from mcphost.tasks.states import TaskState
from tests.audit.conftest import writer
from tests.calls.claim_rows import submit
from tests.tasks.rows import a_task

__all__ = ["writer"]

pytestmark = pytest.mark.django_db(transaction=True)

TENANT: Final = uuid4()


def _create(most: MaxTasks, holder: str = "holder", tenant: UUID = TENANT) -> Condition:
    now = timezone.now()
    task = NewTask(
        id=uuid4(),
        tenant=tenant,
        principal_key="token:1",
        holder=holder,
        era="modern",
        call=new_id(),
        tool="paint",
        request="sealed",
        journal="",
        round=1,
        created_at=now,
        expires_at=now + timedelta(hours=1),
    )
    return changes.create(task, most)


def test_working_tasks_are_counted_per_caller_and_per_tenant(writer: Writer) -> None:
    a_task(TENANT)
    a_task(TENANT, holder="another")
    a_task(TENANT, state=TaskState.COMPLETED)
    a_task(uuid4())
    wanted = [
        (MaxTasks(3, 10), "holder", TENANT),
        (MaxTasks(2, 10), "another", TENANT),
        (MaxTasks(10, 1), "a third", uuid4()),
    ]
    each = [[_create(*one) for _ in range(3)] for one in wanted]
    held = [submit(writer, *((one, []) for one in conditions)) for conditions in each]
    assert [sum(one) for one in held] == [1, 1, 1]


def test_the_limit_of_a_tenant_counts_all_its_callers(writer: Writer) -> None:
    a_task(TENANT)
    conditions = [_create(MaxTasks(10, 3), f"caller {number}") for number in range(4)]
    assert sum(submit(writer, *((one, []) for one in conditions))) == 2


@pytest.mark.parametrize("most", [MaxTasks(2, 10), MaxTasks(10, 2)], ids=["caller", "tenant"])
def test_a_repeated_creation_is_accepted_at_the_limit_and_not_counted_twice(
    writer: Writer, most: MaxTasks
) -> None:
    """As after a connection was lost during the commit."""
    first, second, third = (_create(most) for _ in range(3))
    assert submit(writer, (first, [])) == [True]
    assert submit(writer, (first, []), (second, [])) == [True, True]
    assert submit(writer, (first, []), (third, [])) == [True, False]
    assert Task.objects.count() == 2
