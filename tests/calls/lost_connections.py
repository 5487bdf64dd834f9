"""Connections that are lost during a commit."""

from collections.abc import Callable, Sequence
from typing import Any

from django.db import OperationalError

from mcphost.audit.writer import writer as writer_module
from mcphost.audit.writer.conditions import BoundCondition
from mcphost.audit.writer.rows import PreparedRow
from mcphost.audit.writer.sinks import Sink, sink

Loss = Callable[[Sink, Sequence[PreparedRow], Sequence[BoundCondition]], None]
"""What the database still does before the connection is lost."""


class LosingSink:
    """A sink whose connection is lost, once for each of `losses`."""

    def __init__(self, sink: Sink, losses: list[Loss]) -> None:
        self._sink = sink
        self._losses = losses

    def write(self, rows: Sequence[PreparedRow]) -> None:
        self._sink.write(rows)

    def write_if(self, rows: Sequence[PreparedRow], bound: Sequence[BoundCondition]) -> set[str]:
        if not self._losses:
            return self._sink.write_if(rows, bound)
        self._losses.pop(0)(self._sink, rows, bound)
        raise OperationalError("the connection was lost")

    def made(self, bound: Sequence[BoundCondition]) -> set[str]:
        return self._sink.made(bound)


def after_the_commit(
    sink: Sink, rows: Sequence[PreparedRow], bound: Sequence[BoundCondition]
) -> None:
    sink.write_if(rows, bound)


def before_the_commit(
    sink: Sink, rows: Sequence[PreparedRow], bound: Sequence[BoundCondition]
) -> None:
    return None


def lose_connections(monkeypatch: Any, *losses: Loss) -> None:
    """Make the writer lose its connection in its next conditional commits, one for each loss."""
    real, left = sink, list(losses)
    monkeypatch.setattr(writer_module, "sink", lambda opened: LosingSink(real(opened), left))
