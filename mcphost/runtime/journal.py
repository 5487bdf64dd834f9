"""All that earlier rounds of a call learned. Nothing else survives between rounds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a question, with the digest of the question it was given to."""

    question: str
    result: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Journal:
    """Answers by the author's key, and results of recorded steps by step id."""

    answers: Mapping[str, Answer] = field(default_factory=dict)
    steps: Mapping[str, Any] = field(default_factory=dict)


EMPTY = Journal()
