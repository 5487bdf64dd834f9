"""Rows of tasks and of the questions that they ask. They are deleted when they expire."""

from django.db import models

from mcphost.calls.states import QuestionState
from mcphost.tasks.states import TaskState


class Task(models.Model):
    """A call that outlives its request. The row is the truth: any process can run the next round.

    `id` is 128 random bits. `principal_key` binds the task to its principal, `era` to clients that use one
    form of tasks. `request`, `message` (the status message), `outcome` and `journal` are sealed; a
    task that has ended keeps only its outcome. `round` is the number of the last round that began.
    `progress` is the last report of progress that the client wants to receive, sealed. `session` is the
    session of 2025-11-25 that made the call. `owner` is the process (`feed.nodes`) that runs it,
    `epoch` counts how often a process took the task, `attempts` how often since its journal last
    changed, `retries` how often the round was run again because it had failed. `due_at` is set while
    the task waits
    for a process, and null while it runs or waits for answers. `nonce` belongs to the last change,
    so that a change repeated after a lost connection is recognized. `carrier` is the call of a
    session that may send the task's questions: the latest `tasks/result` of 2025-11-25. Times are the database's.
    """

    id = models.UUIDField(primary_key=True)
    tenant = models.UUIDField()
    principal_key = models.TextField()
    holder = models.CharField(max_length=64)
    era = models.CharField(max_length=16)
    call = models.UUIDField(unique=True)
    tool = models.TextField()
    state = models.CharField(max_length=16, choices=TaskState.choices)
    request = models.TextField(default="", blank=True)
    message = models.TextField(default="", blank=True)
    outcome = models.TextField(default="", blank=True)
    progress = models.TextField(default="", db_default="", blank=True)
    journal = models.TextField(default="", blank=True)
    session = models.UUIDField(null=True, blank=True)
    round = models.BigIntegerField()
    owner = models.UUIDField()
    epoch = models.BigIntegerField()
    attempts = models.BigIntegerField(default=0)
    retries = models.BigIntegerField(default=0, db_default=0)
    nonce = models.TextField()
    carrier = models.UUIDField(null=True, blank=True)
    due_at = models.DateTimeField(null=True, blank=True)
    taken_at = models.DateTimeField()
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        db_table = "tasks_task"
        ordering = ["created_at", "id"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(state__in=TaskState.values), name="tasks_task_state_known"
            )
        ]
        indexes = [
            models.Index(
                fields=["due_at"],
                name="tasks_task_due",
                condition=models.Q(due_at__isnull=False, state="working"),
            ),
            models.Index(
                fields=["holder"], name="tasks_task_holder", condition=models.Q(state="working")
            ),
            models.Index(
                fields=["tenant", "created_at"],
                name="tasks_task_active",
                condition=models.Q(state="working"),
            ),
            models.Index(fields=["tenant", "created_at", "id"], name="tasks_task_listed"),
        ]

    def __str__(self) -> str:
        return f"{self.id} ({self.state})"


class TaskQuestion(models.Model):
    """A question of a task, until the task ends.

    `key` is that of the input request, unique for the life of the task; `author_key` and `digest`
    are the program's. `request` (method and params) and `answer` are sealed. `round` is the round
    that asked, `answer_round` the one that takes the answer in, null before it begins. `sender` is the call
    of a session that sends it, or has sent it.
    """

    id = models.UUIDField(primary_key=True)
    task = models.UUIDField()
    key = models.CharField(max_length=80)
    author_key = models.CharField(max_length=64)
    digest = models.TextField()
    method = models.TextField()
    request = models.TextField()
    round = models.BigIntegerField()
    answer_round = models.BigIntegerField(null=True, blank=True)
    sender = models.UUIDField(null=True, blank=True)
    state = models.CharField(max_length=16, choices=QuestionState.choices)
    answer = models.TextField(default="", blank=True)
    nonce = models.TextField(default="", blank=True)
    asked_at = models.DateTimeField()
    settled_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField()

    class Meta:
        db_table = "tasks_question"
        ordering = ["asked_at", "id"]
        constraints = [
            models.UniqueConstraint(fields=["task", "key"], name="tasks_question_key_once"),
            models.CheckConstraint(
                condition=models.Q(state__in=QuestionState.values),
                name="tasks_question_state_known",
            ),
        ]
        indexes = [
            # Not of open questions only: PostgreSQL would look up the questions of one task there,
            # all of them, while its statistics say that few are open.
            models.Index(fields=["expires_at"], name="tasks_question_expires")
        ]

    def __str__(self) -> str:
        return f"{self.task} {self.key} ({self.state})"
