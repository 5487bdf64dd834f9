"""Large, bad request bodies: every method, with every place in it filled with every kind of JSON.

Handling a body is compared with parsing the same body, in the same run: in CPU time by `cost_of`,
in peak memory by `growth_of`. Only ratios are asserted.
"""

import ctypes
import gc
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from functools import cache
from math import inf
from pathlib import Path as FilePath
from statistics import median
from typing import Any, NamedTuple

import orjson

from mcphost.protocol.nesting import _OF_MESSAGE
from tests.protocol.requests import META

Path = tuple[str | int, ...]
Steps = list[tuple[Callable[[Any], Any], Any]]
Make = Callable[[int], Any]

TIMES = 2
"""What refusing a body may cost, as a multiple of parsing it (docs/design/bodies.md)."""
TRIES = 40
"""The number of measurements; the best one counts, because other processes use the machine."""
FREE_BODIES = 4
MEBIBYTE = 1 << 20
KIBIBYTE = 1 << 10

TEXT = {"type": "text", "text": "Paris"}
SAMPLED = {"role": "assistant", "content": [TEXT], "model": "m", "stopReason": "endTurn"}
RESPONSES = {
    "form": {"action": "accept", "content": {"name": "Ada", "many": ["a"]}},
    "sampling": SAMPLED,
    "tools": {
        **SAMPLED,
        "content": [
            {"type": "tool_use", "id": "1", "name": "a", "input": {}, "_meta": {}},
            {
                "type": "tool_result",
                "toolUseId": "1",
                "content": [
                    {
                        "type": "resource_link",
                        "name": "a",
                        "uri": "a:b",
                        "size": 1,
                        "icons": [{"src": "a:b", "sizes": ["1x1"]}],
                        "annotations": {"audience": ["user"], "priority": 1},
                    },
                    {"type": "resource", "resource": {"uri": "a:b", "text": "t"}},
                ],
                "structuredContent": {"a": 1},
                "isError": False,
            },
        ],
    },
    "roots": {"roots": [{"uri": "file:///a", "name": "a"}]},
}
_RETRY = {"requestState": "s", "inputResponses": RESPONSES}
_INFO = {"name": "t", "version": "1", "icons": [{"src": "a:b", "sizes": ["1x1"]}]}
_CAPABILITIES = {
    "roots": {},
    "sampling": {"tools": {}, "context": {}},
    "elicitation": {"form": {}, "url": {}},
    "extensions": {"a/b": {"c": [1]}},
    "experimental": {"a": {"b": {}}},
}
_COMPLETION = {
    "ref": {"type": "ref/prompt", "name": "p"},
    "argument": {"name": "a", "value": "v"},
    "context": {"arguments": {"b": "c"}},
}
_FILTER = {"toolsListChanged": True, "resourceSubscriptions": ["a:b"]}

MODERN: Mapping[str, Mapping[str, Any]] = {
    "server/discover": {},
    "tools/list": {"cursor": "c"},
    "tools/call": {"name": "echo", "arguments": {"text": "t"}, **_RETRY},
    "prompts/list": {"cursor": "c"},
    "prompts/get": {"name": "p", "arguments": {"a": "b"}, **_RETRY},
    "resources/list": {"cursor": "c"},
    "resources/templates/list": {"cursor": "c"},
    "resources/read": {"uri": "a:b", **_RETRY},
    "completion/complete": _COMPLETION,
    "subscriptions/listen": {"notifications": _FILTER},
    "tasks/get": {"taskId": "t"},
    "tasks/update": {"taskId": "t", "inputResponses": _RETRY["inputResponses"]},
    "tasks/cancel": {"taskId": "t"},
}
"""Valid params of every method of the stateless revision, with all allowed members."""

SESSION: Mapping[str, Mapping[str, Any]] = {
    **{
        method: {name: value for name, value in params.items() if name not in _RETRY}
        for method, params in MODERN.items()
        if method not in ("server/discover", "subscriptions/listen", "tasks/update")
    },
    "tasks/list": {"cursor": "c"},
    "tasks/result": {"taskId": "t"},
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": _CAPABILITIES,
        "clientInfo": _INFO,
    },
    "ping": {},
    "logging/setLevel": {"level": "info"},
    "resources/subscribe": {"uri": "a:b"},
    "resources/unsubscribe": {"uri": "a:b"},
    "notifications/cancelled": {"requestId": 1, "reason": "r"},
    "notifications/initialized": {},
    "notifications/progress": {"progressToken": "p", "progress": 1},
}
"""The same for the session-based revisions, requests and notifications."""

SESSION_META: Mapping[str, Any] = {"progressToken": "p", "traceparent": "t"}


def modern(method: str) -> dict[str, Any]:
    """Return a valid request, whose `_meta` has all allowed members."""
    told = {
        **META,
        "io.modelcontextprotocol/clientInfo": _INFO,
        "io.modelcontextprotocol/clientCapabilities": _CAPABILITIES,
        "io.modelcontextprotocol/logLevel": "info",
        "progressToken": "p",
        "traceparent": "t",
    }
    params = {"_meta": told, **MODERN[method]}
    return deepcopy({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})


def in_session(method: str) -> dict[str, Any]:
    """Return a valid message of a session."""
    params = {"_meta": SESSION_META, **SESSION[method]}
    sent = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    if method.startswith("notifications/"):
        del sent["id"]
    return deepcopy(sent)


def answers() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the responses that a client of a session may send to requests of the server."""
    results = {**RESPONSES, "error": {"code": 1, "message": "m", "data": {}}}
    for name, result in results.items():
        kind = "error" if name == "error" else "result"
        yield name, deepcopy({"jsonrpc": "2.0", "id": "q", kind: result})


JUNK: Mapping[str, Make] = {
    "zeros": lambda size: [0] * (size // 2),
    "texts": lambda size: ["a"] * (size // 4),
    "empty objects": lambda size: [{} for _ in range(size // 3)],
    "blocks and a zero": lambda size: [*({**TEXT} for _ in range(size // 32)), 0],
    "members": lambda size: {f"k{n:05}": 0 for n in range(size // 11)},
    "members that are objects": lambda size: {**{f"k{n:05}": {} for n in range(size // 12)}, "": 0},
    "members that are texts": lambda size: {**{f"k{n:05}": "" for n in range(size // 12)}, "": 0},
    "a long text": "a".__mul__,
}
"""Functions that make a value of about a number of bytes, by what it consists of."""


Act = Callable[[bytes], Any]
Look = Callable[[Any], Any]


def is_shallow(parsed: Any) -> bool:
    """Do the check that every large message gets: whether it is nested too deeply."""
    return _OF_MESSAGE.is_valid(parsed)


_MARK = "<here>"


@cache
def encoded(junk: str, size: int) -> bytes:
    """Return junk as JSON."""
    return orjson.dumps(JUNK[junk](size))


class Place(NamedTuple):
    """The path from a message's root to the place of a value."""

    steps: Path

    def __str__(self) -> str:
        return "/".join(map(str, self.steps))

    def filled(self, message: Any, junk: str, size: int) -> bytes:
        """Return the message with junk of about that size in it. `*` is an unknown member."""
        changed = deepcopy(message)
        node = changed
        for step in self.steps[:-1]:
            node = node[step]
        node["unknown" if self.steps[-1] == "*" else self.steps[-1]] = _MARK
        return orjson.dumps(changed).replace(orjson.dumps(_MARK), encoded(junk, size))


def places(node: Any, before: Path = ()) -> Iterator[Place]:
    """Yield every place in a message: each member and item, and one more in each object."""
    if isinstance(node, dict):
        for name, value in node.items():
            yield Place((*before, name))
            yield from places(value, (*before, name))
        yield Place((*before, "*"))
    elif isinstance(node, list):
        for at, value in enumerate(node):
            yield Place((*before, at))
            yield from places(value, (*before, at))


class Cost(NamedTuple):
    """Seconds of CPU for handling a body, for parsing it, and for one validation by a schema.

    `spent` leaves out what a small body takes, and that one validation. `parsing` is at least what
    `FREE_BODIES` small bodies take: a long text is parsed in less, and then each error message counts.
    """

    spent: float
    parsing: float
    looking: float

    @property
    def times(self) -> float:
        return self.spent / self.parsing

    @property
    def looks(self) -> float:
        return self.looking / self.parsing


def cost_of(
    act: Act, body: bytes, small: bytes, look: Look = is_shallow, looks: float = inf
) -> Cost:
    """Measure `act` against parsing: the best of some tries, ended once it is cheap enough.

    `look` is the validation of the parsed body; it should cost at most `looks` parsings.
    """
    parsed = orjson.loads(body)
    steps: Steps = [
        (orjson.loads, body),
        (look, parsed),
        (act, body),
        (act, small),
    ]
    act(body)
    tracing = sys.gettrace()
    sys.settrace(None)  # measuring coverage slows only Python code
    gc.disable()  # a collection walks all that other tests left, in whichever step it comes
    try:
        return _least(steps, looks)
    finally:
        gc.enable()
        sys.settrace(tracing)


def _least(steps: Steps, looks: float) -> Cost:
    """Measure until the least of each step is cheap enough, else compare medians.

    Other processes disturb the longest step most: the least of a step on a busy machine may be one of
    a quiet moment, and that of another step not.
    """
    seen: list[list[float]] = [[] for _ in steps]
    cost = Cost(inf, 1, inf)
    for _ in range(TRIES):
        for found, (what, given) in zip(seen, steps, strict=True):
            began = time.thread_time()
            what(given)
            found.append(time.thread_time() - began)
        cost = _cost(map(min, seen))
        if cost.times <= TIMES and cost.looks <= looks:
            return cost
    usual = _cost(map(median, seen))
    return min(cost, usual, key=lambda each: each.times)


def _cost(seconds: Iterable[float]) -> Cost:
    parsing, looking, spent, always = seconds
    return Cost(spent - always - looking, max(parsing, FREE_BODIES * always), looking)


_LIBC = ctypes.CDLL(None)


def growth_of(act: Callable[[bytes], Any], body: bytes) -> int:
    """Return the peak growth of this process's resident memory while `act` ran, in bytes.

    It includes memory that extensions allocate outside of Python's allocator.
    """
    _LIBC.malloc_trim(0)
    FilePath("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = _status("VmRSS")
    act(body)
    return max(0, _status("VmHWM") - before)


def _status(name: str) -> int:
    lines = FilePath("/proc/self/status").read_text().splitlines()
    (line,) = (each for each in lines if each.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024
