"""Rounds without a program: the code of the test runs in the round."""

from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mcphost.runtime.call import Call
from mcphost.runtime.journal import EMPTY, Answer, Journal
from mcphost.runtime.outcomes import Deferred, InputRequired, Yielded
from mcphost.runtime.ports import Ports
from mcphost.runtime.questions import InvalidAnswerError, Question
from mcphost.runtime.rounds import Round
from mcphost.runtime.tool_tasks import Unwound
from tests.kinds.rounds import a_call, ports

VERSION = "1"


def question(key: str, text: str = "?", capability: str = "elicitation") -> Question[str]:
    """Build a question whose answer is a text."""
    return Question(key, "elicitation/create", {"message": text}, capability, _read)


def _read(result: Mapping[str, Any]) -> str:
    if not isinstance(text := result.get("text"), str):
        raise InvalidAnswerError("text: is required")
    return text


def answer(asked: Question[Any], text: Any, version: str = VERSION) -> Answer:
    return Answer(asked.digest, version, {"text": text})


class Ticking:
    """A clock that advances a minute with each reading."""

    def __init__(self) -> None:
        self.shown = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        self.shown += timedelta(minutes=1)
        return self.shown


@contextmanager
def a_round(
    journal: Journal = EMPTY, outside: Ports | None = None, call: Call | None = None
) -> Iterator[Round]:
    """Begin a round in the test's own task, for a client that can be asked."""
    asking = a_call(elicitation={})._replace(version=VERSION)
    round = Round(call or asking, journal, outside or ports())
    round.tasks.enter()
    try:
        yield round
    finally:
        round.tasks.exit()


def required(round: Round) -> InputRequired:
    outcome = round.stopped_with()
    assert isinstance(outcome, InputRequired)
    return outcome


async def unwinds(work: Coroutine[Any, Any, Any]) -> None:
    with pytest.raises(Unwound):
        await work


async def ended(round: Round) -> Journal:
    """End a round with a question; return its journal."""
    await unwinds(round.ask(question("end")))
    return required(round).journal


def yielded(round: Round) -> Yielded:
    outcome = round.stopped_with()
    assert isinstance(outcome, Yielded)
    return outcome


def deferred(round: Round) -> Deferred:
    outcome = round.stopped_with()
    assert isinstance(outcome, Deferred)
    return outcome


def keys(outcome: InputRequired) -> list[str]:
    return [request.key for request in outcome.requests]
