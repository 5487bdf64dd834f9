"""The journal during one round: what earlier rounds recorded, and what this round adds."""

from typing import Any

from mcphost.runtime.journal import Answer, Journal
from mcphost.runtime.notification_channel import NotificationChannel
from mcphost.runtime.questions import Question

MISSING: Any = object()


class ChangedProgramError(Exception):
    """The same version of the tool asked a different question under this key in an earlier round."""


class History:
    """One journal: earlier entries are read again from the beginning, new ones are added.

    The channel to the caller is silent until the first lookup that is not in the journal, or until
    the whole journal has been read.
    """

    __slots__ = ("_channel", "_dropped", "_journal", "_new", "_read")

    def __init__(self, journal: Journal, channel: NotificationChannel) -> None:
        self._journal = journal
        self._channel = channel
        self._new: dict[str, Any] = {}
        self._dropped: list[Answer] = []
        self._read: set[tuple[str, str]] = set()
        channel.silent = bool(journal.answers or journal.recorded)

    def recorded(self, id: str) -> Any:
        """Return the value recorded under `id`; MISSING if there is none."""
        if id in self._new:
            return self._new[id]
        value = self._journal.recorded.get(id, MISSING)
        if value is MISSING:
            self._channel.silent = False
        else:
            self._mark("recorded", id)
        return value

    def record(self, id: str, value: Any) -> None:
        """Record a value, which is JSON, for later rounds."""
        self._new[id] = value

    def answer(self, question: Question[Any], version: str) -> Answer | None:
        """Return the answer to this question; None if it must be asked.

        Raises Changed if the same version asked a different question under the key.
        """
        key = question.key
        answer = self._journal.answer(key, question.digest)
        if answer is not None:
            self._mark("answer", key)
            return answer
        if any(earlier.version == version for earlier in self._journal.answers.get(key, ())):
            raise ChangedProgramError(f"question {key!r} changed between rounds")
        self._channel.silent = False
        return None

    def drop(self, answer: Answer) -> None:
        """Remove an answer that was not valid."""
        self._dropped.append(answer)
        self._channel.silent = False

    def journal(self) -> Journal:
        """Return the journal for the next round."""
        answers = {
            key: kept
            for key, key_answers in self._journal.answers.items()
            if (kept := tuple(answer for answer in key_answers if answer not in self._dropped))
        }
        recorded = {**self._journal.recorded, **self._new}
        return Journal(answers, recorded, self._channel.last_progress)

    def _mark(self, kind: str, name: str) -> None:
        self._read.add((kind, name))
        if len(self._read) == len(self._journal.answers) + len(self._journal.recorded):
            self._channel.silent = False
