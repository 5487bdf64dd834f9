"""Large, bad request bodies: every method, with every place in it filled with several kinds of JSON.

What a refusal may cost (docs/design/bodies.md) is counted: see `is_cheap`.
"""

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from functools import cache
from typing import Any, NamedTuple

import orjson

from tests.protocol.requests import META
from tests.work_counts import Work

Path = tuple[str | int, ...]
Make = Callable[[int], Any]

TIMES = 2
"""What refusing a body may cost, as a multiple of parsing it."""
STEPS = 1_000
"""How many lines of Python refusing a body may take: fewer than the bodies here have values."""
EXPLAINING = ("validate", "iter_errors", "validate_json", "validate_python")
"""The calls that look for errors, which takes a hundred times as long as finding out that there is one."""
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
    "a long text": "a".__mul__,
}
"""Functions that make a value of about a number of bytes, by what it consists of."""


Act = Callable[[bytes], Any]


def is_cheap(work: Work, *, validations: int, writes: int, steps: int = STEPS) -> bool:
    """Whether a large body was parsed once, validated and written at most so often, not explained, and
    not walked in Python."""
    return (
        work.calls["loads"] == 1
        and work.calls["dumps"] <= writes
        and work.calls["is_valid"] <= validations
        and not any(work.calls[name] for name in EXPLAINING)
        and work.steps <= steps
    )


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
