"""All that earlier rounds of a call learned. Nothing else survives between rounds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

UNASKED = ""
"""Instead of a question's digest: an answer that came before anything was asked."""

FAILED, TIMED_OUT = "failed", "timed_out"
"""How a question was not answered: the client could not put it, or nobody answered in time."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, with the digest of the question it was given to and the version that asked it.

    `result` is the method's result as the client sent it. There is none where the question was put
    and not answered: then `failure` says how that was, and `result` has the `message` there was, if any.
    """

    question: str
    version: str
    result: Mapping[str, Any]
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Journal:
    """Answers by the author's key, and what else was recorded, by an id of the program's own.

    A key has one answer per question that was asked under it: versions of a tool may ask
    differently. An answer is never overwritten. `progress` is the highest that the caller was told.
    """

    answers: Mapping[str, tuple[Answer, ...]] = field(default_factory=dict)
    recorded: Mapping[str, Any] = field(default_factory=dict)
    progress: float | None = None

    def answer(self, key: str, question: str) -> Answer | None:
        """The answer to that very question; or one that nobody had asked for, if it was taken."""
        found = (one for one in self.answers.get(key, ()) if one.question in (question, UNASKED))
        return next(found, None)

    def with_answer(self, key: str, answer: Answer) -> "Journal":
        """The same with one answer more, unless that question has one."""
        if self.answer(key, answer.question) is not None:
            return self
        answers = {**self.answers, key: (*self.answers.get(key, ()), answer)}
        return Journal(answers, self.recorded, self.progress)

    def largest(self) -> str:
        """What takes the most room, in words for the program's author."""
        sizes = [
            (_size(value), f"what was recorded as {id!r}") for id, value in self.recorded.items()
        ]
        sizes += [
            (_size(one.result), f"the answer to {key!r}")
            for key, given in self.answers.items()
            for one in given
        ]
        if not sizes:
            return "the journal is empty"
        size, what = max(sizes)
        return f"the largest part is {what}, with {size} bytes"


def _size(value: Any) -> int:
    return len(orjson.dumps(value))


EMPTY = Journal()


def as_json(journal: Journal) -> list[Any]:
    """The journal as plain JSON, which `from_json` reads."""
    answers = {key: [_written(one) for one in given] for key, given in journal.answers.items()}
    return [answers, journal.recorded, journal.progress]


def _written(answer: Answer) -> list[Any]:
    plain = [answer.question, answer.version, answer.result]
    return [*plain, answer.failure] if answer.failure else plain


def from_json(written: list[Any]) -> Journal:
    """What `as_json` wrote. Raises ValueError, TypeError or AttributeError for anything else."""
    answers, recorded, progress = written
    return Journal(
        {key: tuple(Answer(*one) for one in given) for key, given in answers.items()},
        recorded,
        progress,
    )
