"""Tasks are read by their ids, for the caller that they belong to."""

from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from mcphost.tasks.selectors import TaskKey, find_all
from tests.tasks.rows import a_question, a_task

pytestmark = pytest.mark.django_db


def _looked_up(*keys: TaskKey) -> tuple[set[TaskKey], int]:
    """The keys for which there are tasks, and how many statements that took."""
    with CaptureQueriesContext(connection) as queries:
        return set(find_all(set(keys))), len(queries)


@pytest.mark.requirement("tasks.unknown")
@pytest.mark.parametrize(
    "other", [{"tenant": uuid4()}, {"principal_key": "token:2"}, {"era": "older"}]
)
def test_a_task_of_another_caller_costs_the_same_queries_as_an_unknown_id(
    other: dict[str, str],
) -> None:
    task = a_task(uuid4())
    a_question(task)
    own = TaskKey(task.id, task.tenant, task.principal_key, task.era)
    assert _looked_up(own)[0] == {own}
    unknown = own._replace(id=uuid4())
    assert _looked_up(own._replace(**other)) == _looked_up(unknown)


def test_tasks_of_several_callers_read_together_go_to_their_own_callers() -> None:
    first, second = (
        a_task(uuid4(), principal_key="token:1"),
        a_task(uuid4(), principal_key="token:2"),
    )
    own = {TaskKey(task.id, task.tenant, task.principal_key, task.era) for task in (first, second)}
    others = {TaskKey(first.id, second.tenant, second.principal_key, second.era)}
    assert _looked_up(*own, *others)[0] == own
