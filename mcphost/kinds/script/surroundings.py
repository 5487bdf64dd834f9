"""The names that a script has in the sandbox: functions of the server, and helpers in the sandbox
itself.

In a plain `def` the functions return their results; in an `async def` those of `LATER` are awaited.
"""

from typing import Final

LATER: Final = ("elicit", "elicit_url", "ask", "sample", "_http")
"""Functions that may take long."""
NOW: Final = ("secret", "progress", "log", "fail", "_offset")

_QUOTE: Final = """
def quote(value):
    text = ""
    for char in str(value):
        if char.isascii() and (char.isalnum() or char in "-._~"):
            text += char
        else:
            text += "".join("%{:02X}".format(byte) for byte in char.encode())
    return text
"""

_UUID: Final = """
import random as _random

def new_uuid():
    bits = f"{_random.getrandbits(122):031x}"
    variant = "89ab"[int(bits[0], 16)]
    return f"{bits[1:9]}-{bits[9:13]}-4{bits[13:16]}-{variant}{bits[16:19]}-{bits[19:]}"
"""

_ZONE: Final = """
from datetime import timedelta as _timedelta, timezone as _timezone

def in_zone(moment, zone):
    there = _timezone(_timedelta(seconds=_offset(zone, moment.isoformat())))
    return moment.replace(tzinfo=there) if moment.tzinfo is None else moment.astimezone(there)
"""

_COMMON: Final = """
import json as _json


class Headers:
    def __init__(self, values):
        self._values = values

    def get(self, name, default=None):
        return self._values.get(name.lower(), default)

    def items(self):
        return self._values.items()

    def keys(self):
        return self._values.keys()

    def __getitem__(self, name):
        return self._values[name.lower()]

    def __contains__(self, name):
        return name.lower() in self._values

    def __iter__(self):
        return iter(self._values)

    def __repr__(self):
        return str(self._values)


class Response:
    def __init__(self, status, headers, text):
        self.status = status
        self.headers = Headers(headers)
        self.text = text
        self.ok = 200 <= status < 300

    def json(self):
        return _json.loads(self.text)


def _response(got):
    return Response(got["status"], got["headers"], got["text"])
"""

_METHOD: Final = """
    {define} {name}(self, url, *, params=None, headers=None, json=None, data=None):
        return _response({wait}_http("{method}", url, params, headers, json, data))
"""

_STUB: Final = """
    {define} {name}(self, url: str, *, params: dict[str, Any] | None = None,
        headers: dict[str, Any] | None = None, json: Any = None, data: str | dict[str, Any] | None = None) -> Response: ...
"""

METHODS: Final = ("get", "post", "put", "patch", "delete", "head")

_STUBS: Final = """
import datetime as _datetime
from collections.abc import Iterable, Iterator
from typing import Any, Never

class Headers:
    def get(self, name: str, default: Any = None) -> Any: ...
    def items(self) -> Iterable[tuple[str, str]]: ...
    def __getitem__(self, name: str) -> str: ...
    def __contains__(self, name: str) -> bool: ...
    def __iter__(self) -> Iterator[str]: ...

class Response:
    status: int
    headers: Headers
    text: str
    ok: bool
    def json(self) -> Any: ...

{define} elicit(key: str, message: str, fields: dict[str, Any]) -> dict[str, Any]: ...
{define} elicit_url(key: str, message: str, url: str) -> None: ...
{define} ask(key: str, message: str, fields: dict[str, Any]) -> dict[str, Any]: ...
{define} sample(key: str, prompt: str, *, max_tokens: int = 1000, system: str | None = None) -> str: ...
def quote(value: object) -> str: ...
def new_uuid() -> str: ...
def in_zone(moment: _datetime.datetime, zone: str) -> _datetime.datetime: ...
def secret(name: str) -> str: ...
def progress(progress: float, total: float | None = None, message: str | None = None) -> None: ...
def log(data: Any, level: str = "info") -> None: ...
def fail(message: str) -> Never: ...
"""

_BUILTINS: Final = """
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")

def filter(function: Callable[[_T], Any] | None, values: Iterable[_T]) -> list[_T]: ...
def map(function: Callable[..., _T], *values: Iterable[Any]) -> list[_T]: ...
def getattr(object: object, name: str, default: Any = ...) -> Any: ...
def hasattr(object: object, name: str) -> bool: ...
def setattr(object: object, name: str, value: Any) -> None: ...
"""
"""Functions that the interpreter has, and its type checker does not know. `filter` and `map` return
lists there."""

DESCRIBED: Final = (
    ("http.get(url, params=…, headers=…)", "Send a request; also post, put, patch, delete, head."),
    ("quote(value)", "Percent-encode a value, for a part of an address."),
    ("new_uuid()", "Return a random UUID, as a text."),
    ("in_zone(moment, zone)", "Return the same moment as a datetime of a time zone."),
    ("secret(name)", "Name a secret in a header, the query, a JSON body or a form."),
    ("elicit(key, message, fields)", "Ask the user; a user who declines ends the call."),
    (
        "elicit_url(key, message, url)",
        "Ask the user to open a page; a user who declines ends the call.",
    ),
    ("ask(key, message, fields)", "Ask the user, and get the action and the content."),
    ("sample(key, prompt)", "Ask the client's model for a text."),
    ("progress(done, total, message)", "Tell the client how far the call is."),
    ("log(data, level)", "Send the client a log message."),
    ("fail(message)", "End the call with an error that the caller reads."),
)
"""The functions for authors: how each is called, and what it does."""


def prelude(source: str, *, waits: bool) -> str:
    """Return the code that runs in the sandbox before a script: none for one that does not use it."""
    parts = [_QUOTE] if "quote" in source else []
    parts += [_UUID] if "new_uuid" in source else []
    parts += [_ZONE] if "in_zone" in source else []
    if "http" in source:
        parts += [_COMMON, _http_class(_METHOD, waits=waits), "\n\nhttp = _Http()\n"]
    return "".join(parts)


def stubs(*, waits: bool) -> str:
    """Return the declarations that a script is checked with."""
    return declarations(waits=waits) + _BUILTINS


def declarations(*, waits: bool) -> str:
    """Return the declarations of the functions of the server."""
    declared = _STUBS.format(define=_define(waits))
    return declared + _http_class(_STUB, waits=waits) + "\nhttp: _Http\n"


def _http_class(template: str, *, waits: bool) -> str:
    define, wait = _define(waits), "await " if waits else ""
    methods = (
        template.format(define=define, wait=wait, name=name, method=name.upper())
        for name in METHODS
    )
    return "\n\nclass _Http:" + "".join(methods)


def _define(waits: bool) -> str:
    return "async def" if waits else "def"
