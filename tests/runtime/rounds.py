"""A round without a program around it: the test itself is what runs in it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from mcphost.runtime.journal import EMPTY, Answer, Journal
from mcphost.runtime.outcomes import InputRequired, Yielded
from mcphost.runtime.ports import Ports
from mcphost.runtime.questions import InvalidAnswer, Question
from mcphost.runtime.rounds import Round
from tests.kinds.rounds import a_call, ports

VERSION = "1"


def question(key: str, text: str = "?", capability: str = "elicitation") -> Question[str]:
    """A question whose answer is a text."""
    return Question(key, "elicitation/create", {"message": text}, capability, _read)


def _read(result: Mapping[str, Any]) -> str:
    if not isinstance(text := result.get("text"), str):
        raise InvalidAnswer("text: is required")
    return text


def answer(asked: Question[Any], text: Any, version: str = VERSION) -> Answer:
    return Answer(asked.digest, version, {"text": text})


class Ticking:
    """A clock that shows a minute more whenever it is looked at."""

    def __init__(self) -> None:
        self.shown = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        self.shown += timedelta(minutes=1)
        return self.shown


@contextmanager
def a_round(journal: Journal = EMPTY, outside: Ports | None = None) -> Iterator[Round]:
    """A round that runs in the test's own task, for a client that may be asked."""
    call = a_call(elicitation={})._replace(version=VERSION)
    round = Round(call, journal, outside or ports())
    round.children.enter()
    try:
        yield round
    finally:
        round.children.leave()


def required(round: Round) -> InputRequired:
    outcome = round.stopped_with()
    assert isinstance(outcome, InputRequired)
    return outcome


def yielded(round: Round) -> Yielded:
    outcome = round.stopped_with()
    assert isinstance(outcome, Yielded)
    return outcome


def keys(outcome: InputRequired) -> list[str]:
    return [request.key for request in outcome.requests]
