"""Everything that earlier rounds of a call learned. Nothing else survives between rounds."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

UNASKED = ""
"""Stands for a question's digest: the answer was given before the question was asked."""

FAILED, TIMED_OUT = "failed", "timed_out"
"""Why a question has no answer: the client could not ask it, or there was no answer in time."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer, with the digest of its question and the version of the tool that asked it.

    `result` is the method's result as the client sent it. If the question was asked but not
    answered, `failure` is the reason, and `result` has a `message`, if there is one.
    """

    question: str
    version: str
    result: Mapping[str, Any]
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Journal:
    """Answers by the author's key, and all other recorded values by an id of the program's own.

    A key has one answer for each question that was asked under it, because versions of a tool may
    ask differently. Answers are never overwritten. `progress` is the highest value sent to the
    caller. `paused` is a program that was stopped where it asked, as JSON of its kind's own; the round
    that continues it leaves it out of its journal.
    """

    answers: Mapping[str, tuple[Answer, ...]] = field(default_factory=dict)
    recorded: Mapping[str, Any] = field(default_factory=dict)
    progress: float | None = None
    paused: Mapping[str, Any] | None = None

    def answer(self, key: str, question: str) -> Answer | None:
        """Return the answer to this question, or one that was accepted before any question was
        asked."""
        answers = (
            answer for answer in self.answers.get(key, ()) if answer.question in (question, UNASKED)
        )
        return next(answers, None)

    def with_answer(self, key: str, answer: Answer) -> "Journal":
        """Return the journal with one more answer, unless the question already has one."""
        if self.answer(key, answer.question) is not None:
            return self
        answers = {**self.answers, key: (*self.answers.get(key, ()), answer)}
        return replace(self, answers=answers)

    def largest(self) -> str:
        """Describe the largest entry, for the program's author."""
        sizes = [
            (_size(value), f"what was recorded as {id!r}") for id, value in self.recorded.items()
        ]
        sizes += [
            (_size(answer.result), f"the answer to {key!r}")
            for key, key_answers in self.answers.items()
            for answer in key_answers
        ]
        if self.paused is not None:
            sizes.append((_size(self.paused), "the paused program"))
        if not sizes:
            return "the journal is empty"
        size, description = max(sizes)
        return f"the largest part is {description}, with {size} bytes"


def _size(value: Any) -> int:
    return len(orjson.dumps(value))


EMPTY = Journal()


def as_json(journal: Journal) -> list[Any]:
    """Return the journal as plain JSON, which `from_json` reads."""
    answers = {
        key: [_answer_as_json(answer) for answer in key_answers]
        for key, key_answers in journal.answers.items()
    }
    plain = [answers, journal.recorded, journal.progress]
    return plain if journal.paused is None else [*plain, journal.paused]


def _answer_as_json(answer: Answer) -> list[Any]:
    plain = [answer.question, answer.version, answer.result]
    return [*plain, answer.failure] if answer.failure else plain


def from_json(written: list[Any]) -> Journal:
    """Read what `as_json` wrote. Raises ValueError, TypeError or AttributeError for anything else."""
    answers, recorded, progress, *paused = written
    return Journal(
        {
            key: tuple(Answer(*fields) for fields in key_answers)
            for key, key_answers in answers.items()
        },
        recorded,
        progress,
        *paused,
    )
