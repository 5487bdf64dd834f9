"""Queue due rounds of tasks as jobs of procrastinate, for workers to take.

The task's row is the truth: a job only says that a round of a task waited for a process when the task
was in an epoch. A job that is lost is queued again, and one that comes twice or too late finds that
there is nothing to do.
"""

from collections.abc import Collection
from typing import Final, NamedTuple
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connections, transaction
from procrastinate import App
from procrastinate.contrib.django.django_connector import DjangoConnector
from procrastinate.jobs import Job

from mcphost.calls.ownership import NO_OWNER
from mcphost.tasks import services
from mcphost.tasks.states import TaskState

QUEUE: Final = "mcphost.tasks"
ROUND: Final = "mcphost.round"
"""The name of the jobs. Their argument `task` is the task's id."""
QUEUED_AT_ONCE: Final = 200
_ONE_AT_A_TIME: Final = 0x6D63705F7461736B
"""The advisory lock of the process that queues: two at once would exceed the limits together."""

# A round that is queued or runs has a place of its tenant and of its tool.
_FAIR: Final = f"""
WITH queued AS (
  SELECT queueing_lock FROM procrastinate_jobs
  WHERE queue_name = %(queue)s AND status IN ('todo', 'doing')
), working AS (
  SELECT id, tenant, tool, due_at, epoch, owner <> %(no_owner)s AS runs,
    (id || '/' || epoch) IN (SELECT queueing_lock FROM queued) AS is_queued
  FROM tasks_task WHERE state = '{TaskState.WORKING}' AND expires_at > statement_timestamp()
    AND (owner <> %(no_owner)s OR due_at <= statement_timestamp())
), of_tools AS (
  SELECT tenant, tool, count(*) AS busy FROM working WHERE runs OR is_queued GROUP BY tenant, tool
), of_tenants AS (
  SELECT tenant, sum(busy) AS busy FROM of_tools GROUP BY tenant
), waiting AS (
  SELECT id, tenant, tool, due_at, epoch,
    row_number() OVER (PARTITION BY tenant, tool ORDER BY due_at, id) AS place
  FROM working WHERE NOT runs AND NOT is_queued
), next AS (
  SELECT id, tenant, due_at, epoch,
    row_number() OVER (PARTITION BY tenant ORDER BY due_at, id) AS place
  FROM waiting LEFT JOIN of_tools USING (tenant, tool)
  WHERE place + coalesce(busy, 0) <= %(of_tool)s
)
SELECT id, epoch FROM next LEFT JOIN of_tenants USING (tenant)
WHERE place + coalesce(busy, 0) <= %(of_tenant)s ORDER BY due_at, id LIMIT %(most)s
"""  # noqa: S608 - constants

queue = App(connector=DjangoConnector())
"""Adds jobs over this thread's connection, in its transaction."""


class Places(NamedTuple):
    """How many rounds may be queued or run at once: of one tenant, and of one tool of a tenant."""

    of_tenant: int
    of_tool: int


def hand_out(woken: Collection[UUID], places: Places) -> int:
    """Queue due rounds in their order, as far as there are places; return how many.

    Those of the tasks `woken` that wait for nothing become due first. Only for PostgreSQL.
    """
    if woken:
        services.make_due(woken)
    if not _next(places):
        return 0
    with transaction.atomic():
        with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_ONE_AT_A_TIME])
        due_rounds = _next(places)  # again: another process may have queued them meanwhile
        if due_rounds:
            queue.job_manager.batch_defer_jobs([_job(task, epoch) for task, epoch in due_rounds])
    return len(due_rounds)


def _next(places: Places) -> list[tuple[UUID, int]]:
    parameters = {"queue": QUEUE, "no_owner": NO_OWNER, "most": QUEUED_AT_ONCE, **places._asdict()}
    with connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute(_FAIR, parameters)
        due_rounds: list[tuple[UUID, int]] = cursor.fetchall()
    return due_rounds


def _job(task: UUID, epoch: int) -> Job:
    return Job(
        queue=QUEUE,
        lock=None,
        queueing_lock=f"{task}/{epoch}",
        task_name=ROUND,
        task_kwargs={"task": task.hex},
    )
