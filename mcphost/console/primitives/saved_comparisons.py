"""What saved calls expect, in words, and how what they gave differs from it."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

from mcphost.catalogue.saved_calls import Expectation, SavedCallRow, SavedRequest, saved_calls
from mcphost.console.primitives.played_clients import ChosenClient
from mcphost.console.primitives.saving import EXPECTED_OUTCOMES
from mcphost.console.primitives.version_changes import compare

MAX_TEXT: Final = 20_000
"""Characters of a difference; a longer one is cut after them."""


class SavedCallEnding(NamedTuple):
    """How a call ended, as far as expectations go. `problem` says why it did not run to its end."""

    outcome: str
    text: str = ""
    structured: Any = None
    call: UUID | None = None
    problem: str = ""


class ResultExcerpt(NamedTuple):
    """What a call gave instead of what is expected, under a title."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Whether a call gave what is expected; else `problems` say what differs, and `excerpt` shows it."""

    ending: SavedCallEnding
    seconds: float
    problems: tuple[str, ...]
    excerpt: ResultExcerpt | None = None

    @property
    def passed(self) -> bool:
        return not self.problems


class ShownCall(NamedTuple):
    """A saved call on a page: what it does and expects in words, and what its last run gave, if it ran."""

    row: SavedCallRow
    client: str
    expects: str
    comparison: Comparison | None = None


def shown_calls(
    tool: UUID, comparisons: Mapping[UUID, Comparison] | None = None
) -> list[ShownCall]:
    """Return the saved calls of a tool for its page."""
    return [
        ShownCall(
            row,
            client_of(row.request).title if row.request else "",
            _in_words(row.expectation) if row.expectation else "",
            (comparisons or {}).get(row.id),
        )
        for row in saved_calls(tool)
    ]


def differing(expectation: Expectation, ending: SavedCallEnding) -> Iterator[str]:
    """Yield what is not as expected, a sentence each."""
    if ending.problem:
        yield ending.problem
    elif ending.outcome != expectation.outcome:
        yield f"Expected: {_words(expectation.outcome)}. {_words(ending.outcome)}."
    elif expectation.contains and expectation.contains not in ending.text:
        yield f"The result does not contain “{expectation.contains}”."
    elif expectation.structured is not None and expectation.structured != ending.structured:
        yield "The structured content is another one."


def excerpt_of(expectation: Expectation, ending: SavedCallEnding) -> ResultExcerpt | None:
    """Return the lines of the structured content that differ; else the text, if that is not as expected."""
    if ending.problem or not any(differing(expectation, ending)):
        return None
    if expectation.structured is None or ending.outcome != expectation.outcome:
        return ResultExcerpt("Its result", ending.text[:MAX_TEXT]) if ending.text else None
    before, after = (
        json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
        for value in (expectation.structured, ending.structured)
    )
    text = "\n".join(f"{line.sign} {line.text}" for line in compare(before, after))
    return ResultExcerpt("What differs in the structured content", text[:MAX_TEXT])


def client_of(sent: SavedRequest) -> ChosenClient:
    with suppress(TypeError):  # a page of a later release carried something else
        return ChosenClient(**sent.client)
    return ChosenClient()


def _in_words(expectation: Expectation) -> str:
    parts = [_words(expectation.outcome)]
    if expectation.contains:
        parts.append(f"the result contains “{expectation.contains}”")
    if expectation.structured is not None:
        parts.append("the structured content is the same")
    *beginning, last = parts
    return f"{', '.join(beginning)}, and {last}" if beginning else last


def _words(outcome: str) -> str:
    return EXPECTED_OUTCOMES.get(outcome, outcome)
