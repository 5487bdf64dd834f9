"""Connections that are lost in the very moment of a commit."""

from collections.abc import Callable, Sequence
from typing import Any

from django.db import OperationalError

from mcphost.audit import writer as writer_module
from mcphost.audit.conditions import Bound
from mcphost.audit.rows import Row
from mcphost.audit.sinks import Sink

Loss = Callable[[Sink, Sequence[Row], Sequence[Bound]], None]
"""What the database does before the connection is lost."""


class LosingSink:
    """A sink whose connection is lost, once for each of `losses`."""

    def __init__(self, sink: Sink, losses: list[Loss]) -> None:
        self._sink = sink
        self._losses = losses

    def write(self, rows: Sequence[Row]) -> None:
        self._sink.write(rows)

    def write_if(self, rows: Sequence[Row], bound: Sequence[Bound]) -> set[str]:
        if not self._losses:
            return self._sink.write_if(rows, bound)
        self._losses.pop(0)(self._sink, rows, bound)
        raise OperationalError("the connection was lost")

    def made(self, bound: Sequence[Bound]) -> set[str]:
        return self._sink.made(bound)


def after_the_commit(sink: Sink, rows: Sequence[Row], bound: Sequence[Bound]) -> None:
    sink.write_if(rows, bound)


def before_the_commit(sink: Sink, rows: Sequence[Row], bound: Sequence[Bound]) -> None:
    return None


def lose_connections(monkeypatch: Any, *losses: Loss) -> None:
    """Have the writer lose its connection in its next commits with a condition, one for each."""
    real, left = writer_module.sink, list(losses)
    monkeypatch.setattr(writer_module, "sink", lambda opened: LosingSink(real(opened), left))
