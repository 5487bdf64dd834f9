"""What a round knows from earlier ones, and what it adds."""

from typing import Any

from mcphost.runtime.journal import Answer, Journal
from mcphost.runtime.line import Line
from mcphost.runtime.questions import Question

MISSING: Any = object()


class Changed(Exception):  # noqa: N818 - a refusal that says what happened
    """A question is not the one that was asked under its key, by the same version of the tool."""


class History:
    """One journal, read from the beginning again while new things are written after it.

    The line to the caller is silent until the first thing that is not in the journal, or until all
    of the journal has been read.
    """

    __slots__ = ("_dropped", "_journal", "_line", "_new", "_read")

    def __init__(self, journal: Journal, line: Line) -> None:
        self._journal = journal
        self._line = line
        self._new: dict[str, Any] = {}
        self._dropped: list[Answer] = []
        self._read: set[tuple[str, str]] = set()
        line.silent = bool(journal.answers or journal.recorded)

    def recorded(self, id: str) -> Any:
        """What was recorded under `id`, MISSING if there is nothing."""
        if id in self._new:
            return self._new[id]
        value = self._journal.recorded.get(id, MISSING)
        if value is MISSING:
            self._line.silent = False
        else:
            self._mark("recorded", id)
        return value

    def record(self, id: str, value: Any) -> None:
        """Keep a value, which is JSON, for the rounds to come."""
        self._new[id] = value

    def answer(self, question: Question[Any], version: str) -> Answer | None:
        """The answer to that very question, None if it is to be asked.

        Raises Changed if the same version has asked something else under the key.
        """
        key = question.key
        found = self._journal.answer(key, question.digest)
        if found is not None:
            self._mark("answer", key)
            return found
        if any(one.version == version for one in self._journal.answers.get(key, ())):
            raise Changed(f"question {key!r} changed between rounds")
        self._line.silent = False
        return None

    def drop(self, answer: Answer) -> None:
        """Forget an answer that did not do."""
        self._dropped.append(answer)
        self._line.silent = False

    def journal(self) -> Journal:
        """What the next round will know."""
        answers = {
            key: kept
            for key, given in self._journal.answers.items()
            if (kept := tuple(one for one in given if one not in self._dropped))
        }
        recorded = {**self._journal.recorded, **self._new}
        return Journal(answers, recorded, self._line.told)

    def _mark(self, sort: str, name: str) -> None:
        self._read.add((sort, name))
        if len(self._read) == len(self._journal.answers) + len(self._journal.recorded):
            self._line.silent = False
