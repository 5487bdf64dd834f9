"""Programs and clients at random, for the tool in `tests/probes/interpreter.py`, which says what a
program is."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from hypothesis import strategies as st

Program = list[Any]

DEPTH = 3
"""The most questions one after the other: clients that dally need legs, too."""

DALLYING = 3
"""The most legs with which a client gets nowhere."""

_STEPS = st.tuples(st.sampled_from(["step", "loose"]), st.sampled_from("ab"), st.integers(0, 1))
_ASKS = st.just(("ask", ""))


def _blocks(depth: int) -> st.SearchStrategy[Any]:
    parts: st.SearchStrategy[Any] = _STEPS | _ASKS
    if depth:
        inner = st.lists(_blocks(depth - 1), min_size=2, max_size=1 + depth)
        parts |= st.tuples(st.sampled_from(["gather", "group"]), inner)
    return st.lists(parts, min_size=1, max_size=3)


def programs() -> st.SearchStrategy[Program]:
    """Steps and questions in sequence and side by side, no more than DEPTH questions deep."""
    return _blocks(2).map(lambda drawn: _numbered(drawn, DEPTH, count())[0])


def _numbered(block: Any, left: int, numbers: "count[int]") -> tuple[Program, int]:
    """The block with a key of its own for each question, and how deep it may still go after it."""
    made: Program = []
    for instruction in block:
        match instruction:
            case ("ask", _) if left:
                made.append(["ask", f"q{next(numbers)}"])
                left -= 1
            case ("ask", _):
                made.append(["step", "instead", next(numbers)])
            case ("gather" | "group" as how, parts):
                sides = [_numbered(part, left, numbers) for part in parts]
                made.append([how, [side for side, _ in sides]])
                left = min(rest for _, rest in sides)
            case _:
                made.append(list(instruction))
    return made, left


def keys(program: Program) -> Iterator[str]:
    """The keys of all questions of a program."""
    for how, *what in program:
        if how == "ask":
            yield what[0]
        elif how in ("gather", "group"):
            for part in what[0]:
                yield from keys(part)


def truth(key: str) -> Mapping[str, Any]:
    """What the one at the client answers to a question, whenever it is asked in earnest."""
    number = int(key.removeprefix("q"))
    if number % 5 == 3:
        return {"action": "decline"}
    if number % 5 == 4:
        return {"action": "cancel"}
    return {"action": "accept", "content": {"number": number}}


DECOY: Mapping[str, Any] = {"action": "accept", "content": {"number": -1}}
INVALID: Mapping[str, Any] = {"action": "accept", "content": {"number": "none"}}


@dataclass(frozen=True)
class Leg:
    """How a client goes about one leg, and what becomes of the server meanwhile.

    `withhold` and `spoil` are the share of what was asked that is left out or answered wrongly;
    `decoys` adds answers to everything that was not asked now: before it is, after it was, never.
    `kill` ends the round after so many effects, before the last of them is recorded; `again` sends
    the same a second time once it was answered; `shed` has the process leave. A first leg is neither
    cut short nor sent again: that would be another call.
    """

    withhold: int = 0
    spoil: int = 0
    decoys: bool = False
    kill: int = 0
    again: bool = False
    shed: bool = False

    @property
    def dallies(self) -> bool:
        return bool(self.withhold or self.spoil)

    def answers(self, asked: list[str], program: Program) -> dict[str, Mapping[str, Any]]:
        """What this leg brings for what was asked."""
        given = {key: truth(key) for key in asked[self.withhold :]}
        given |= {key: INVALID for key in asked[-self.spoil :] if self.spoil and key in given}
        if not self.decoys:
            return given
        others = {key: DECOY for key in [*keys(program), "never"] if key not in asked}
        return {**others, **given}


def clients() -> st.SearchStrategy[list[Leg]]:
    """The legs of a client until it has had enough of that, and no longer dallies."""
    some = st.sampled_from([0, 0, 1, 2])
    legs = st.builds(
        Leg,
        withhold=some,
        spoil=some,
        decoys=st.booleans(),
        kill=st.sampled_from([0, 0, 1, 2, 3]),
        again=st.booleans(),
        shed=st.booleans(),
    )
    return st.lists(legs, min_size=1, max_size=DALLYING)
