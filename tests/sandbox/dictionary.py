"""Write the dictionary that paused scripts are compressed with, from samples.

    python -m tests.sandbox.dictionary

It has what the states of different samples have in common: names of the interpreter's own, the
code that runs before scripts, and its compiled form.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Any, Final

from pydantic_monty import Monty

from mcphost.kinds.script.program import LIMITS
from mcphost.kinds.script.surroundings import LATER, NOW, prelude
from mcphost.sandbox import scripts
from mcphost.sandbox.scripts import ScriptJob

FILE: Final = Path(scripts.__file__).with_name("paused.dictionary")
LARGEST: Final = 19 * 1024
GRAM: Final = 20
"""Bytes that must be found in two samples."""

_PLAIN: Final = '''
def order(item: str) -> str:
    """Asks in a plain function."""
    sizes = ["small", "large"]
    answer = elicit("size", f"Which size of {item}?", {"size": sizes, "count": int})
    return f"{answer['count']} {item}"
'''
_LOOP: Final = '''
def collect(names: list[str]) -> dict[str, int]:
    """Asks in a loop."""
    total = {}
    for name in names:
        progress(len(total), len(names))
        given = ask(name, f"How many of {name}?", {"amount": float})
        if given["action"] == "accept":
            total[name] = given["content"]["amount"]
    return total
'''
_SENDS: Final = '''
import re

def look(city: str) -> str:
    """Sends a request, and asks."""
    found = http.get("https://one.example/places", params={"q": city})
    if not found.ok:
        fail("there is none")
    choice = elicit("which", "Which one?", {"place": [one["name"] for one in found.json()]})
    return re.sub(" +", " ", choice["place"])
'''
_WAITS: Final = '''
import asyncio
import json

async def report(week: int) -> str:
    """Sends requests side by side, and asks."""
    first, second = await asyncio.gather(
        http.post("https://two.example/a", json={"week": week}, headers={"X-Key": secret("k")}),
        http.post("https://two.example/b", data="text"),
    )
    reason = await elicit("reason", "Why?", {"reason": str})
    return json.dumps([first.json(), second.text, reason["reason"]])
'''
_WAITS_MORE: Final = '''
async def remove(id: str, sure: bool = False) -> bool:
    """Asks, and sends a request afterwards."""
    while not sure:
        given = await ask("sure", "Are you sure?", {"sure": bool})
        sure = given["action"] == "accept" and given["content"]["sure"]
    gone = await http.delete(f"https://three.example/{id}")
    return gone.ok
'''
_WITHOUT: Final = '''
async def talk(topic: str) -> str:
    """Asks, and sends nothing."""
    said = []
    for turn in range(3):
        text = await sample(f"turn-{turn}", f"Say something about {topic}", max_tokens=50)
        said.append(text)
        log({"turn": turn})
    return " ".join(said)
'''
SAMPLES: Final[Sequence[tuple[str, str, dict[str, Any]]]] = (
    (_PLAIN, "order", {"item": "ink"}),
    (_LOOP, "collect", {"names": ["red", "green"]}),
    (_SENDS, "look", {"city": "Graz"}),
    (_WAITS, "report", {"week": 3}),
    (_WAITS_MORE, "remove", {"id": "seven"}),
    (_WITHOUT, "talk", {"topic": "rain"}),
)
_RESPONSE: Final = {"status": 200, "headers": {"content-type": "application/json"}, "text": "[]"}


class PausedSample(ScriptJob):
    """Runs a sample until it asks; keeps the state as it is before compression."""

    def __init__(self, source: str, function: str, arguments: dict[str, Any]) -> None:
        waits = "async def" in source
        self._calls_seen: list[dict[str, Any]] = []
        job = {
            "source": source,
            "prelude": prelude(source, waits=waits),
            "entry": f"{'await ' if waits else ''}{function}(**_arguments)",
            "arguments": arguments,
            "now": [*NOW] if waits else [*NOW, *LATER],
            "later": [*LATER] if waits else [],
            "limits": dict(LIMITS),
            "time": "2026-01-01T00:00:00+00:00",
            "seed": "0" * 32,
            "printed": 0,
        }
        self._last: dict[str, Any] = {}
        super().__init__(job, self._sent, self._reply)

    def _sent(self, message: dict[str, Any]) -> None:
        self._calls_seen += message["calls"]
        self._last = message

    def _reply(self) -> dict[str, Any]:
        """Answer what is no question, or pause the script."""
        pending = set(self._last["pending"])
        values = {
            str(call["id"]): {"return_value": _RESPONSE if call["name"] == "_http" else "x"}
            for call in self._calls_seen
            if call["id"] in pending and (call["name"] == "_http" or call["name"] in NOW)
        }
        return {"answers": values} if values else {"answers": None, "dump": True}

    def state(self, monty: Monty) -> bytes:
        return scripts.unpacked(self.run(monty)["image"], self._dictionary)


def states() -> list[bytes]:
    """The states of the samples, each paused where it asks for the first time."""
    with Monty(min_processes=1, max_processes=1) as monty:
        return [PausedSample(*sample).state(monty) for sample in SAMPLES]


def dictionary(states: Sequence[bytes]) -> bytes:
    """Return what is in more than one state, each piece once."""
    common = Counter(gram for state in states for gram in set(_grams(state)))
    made, had = bytearray(), set[bytes]()
    for state in sorted(states, key=len):
        for piece in _pieces(state, {gram for gram in common if common[gram] > 1} - had):
            made += piece
        had.update(_grams(bytes(made)))
    return bytes(made[-LARGEST:])


def _grams(state: bytes) -> Iterator[bytes]:
    return (bytes(state[at : at + GRAM]) for at in range(len(state) - GRAM + 1))


def _pieces(state: bytes, wanted: AbstractSet[bytes]) -> Iterator[bytes]:
    """Yield the longest parts of a state that have nothing but what is wanted."""
    begun = None
    for at, gram in enumerate(_grams(state)):
        if gram in wanted:
            begun = at if begun is None else begun
        elif begun is not None:
            yield state[begun : at + GRAM - 1]
            begun = None
    if begun is not None:
        yield state[begun:]


if __name__ == "__main__":
    FILE.write_bytes(dictionary(states()))
