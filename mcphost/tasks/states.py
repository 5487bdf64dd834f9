"""The states of tasks, and the transitions between them. Those of their questions: `calls.states`.

A task that works and has an open question is shown to clients as `input_required`: that is not a
state of the row, because an answer changes only its question.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from django.db import models


class TaskState(models.TextChoices):
    """The state of a task's row. All but the first are final."""

    WORKING = "working"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class TaskEvent(StrEnum):
    """What can happen to a task."""

    ROUND = "round"
    """A round began, or ended without a result."""
    RESULT = "result"
    ERROR = "error"
    CANCEL = "cancel"


TRANSITIONS: Final[Mapping[tuple[TaskState, TaskEvent], TaskState]] = MappingProxyType(
    {
        (TaskState.WORKING, TaskEvent.ROUND): TaskState.WORKING,
        (TaskState.WORKING, TaskEvent.RESULT): TaskState.COMPLETED,
        (TaskState.WORKING, TaskEvent.ERROR): TaskState.FAILED,
        (TaskState.WORKING, TaskEvent.CANCEL): TaskState.CANCELLED,
    }
)
"""What each event makes of each state. A pair that is missing changes nothing."""
