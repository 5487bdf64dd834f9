"""What a round goes on from: what the call's earlier rounds left, and the answers that came since."""

from typing import NamedTuple

from mcphost.protocol.canonical import digest
from mcphost.runtime.journal import EMPTY, Answer, Journal
from mcphost.serving.states import State


class Taken(NamedTuple):
    """An answer that this leg brought, and the method that it answers (unknown if unasked)."""

    key: str
    method: str
    answer: Answer


class Resumed(NamedTuple):
    """What a leg brought along. Without a state it is a new call; `sealed_by` is the state's key."""

    state: State | None
    journal: Journal
    taken: tuple[Taken, ...]
    sealed_by: str = ""

    @property
    def digest(self) -> str:
        """Names the set of answers: the same ones again are the same leg again."""
        return digest({one.key: one.answer.result for one in self.taken})


FRESH = Resumed(None, EMPTY, ())
