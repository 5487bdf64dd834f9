"""The names that a script has in the sandbox: functions of the server, and helpers in the sandbox
itself.

In a plain `def` the functions return their results; in an `async def` those of `LATER` are awaited.
"""

from typing import Final

LATER: Final = ("elicit", "elicit_url", "ask", "sample", "_http")
"""Functions that may take long."""
NOW: Final = ("secret", "progress", "log", "fail")

_COMMON: Final = """
import json as _json


class Response:
    def __init__(self, status, headers, text):
        self.status = status
        self.headers = headers
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
        headers: dict[str, str] | None = None, json: Any = None, data: str | None = None) -> Response: ...
"""

METHODS: Final = ("get", "post", "put", "patch", "delete", "head")

_STUBS: Final = """
from typing import Any, Never

class Response:
    status: int
    headers: dict[str, str]
    text: str
    ok: bool
    def json(self) -> Any: ...

{define} elicit(key: str, message: str, fields: dict[str, Any]) -> dict[str, Any]: ...
{define} elicit_url(key: str, message: str, url: str) -> None: ...
{define} ask(key: str, message: str, fields: dict[str, Any]) -> dict[str, Any]: ...
{define} sample(key: str, prompt: str, *, max_tokens: int = 1000, system: str | None = None) -> str: ...
def secret(name: str) -> str: ...
def progress(progress: float, total: float | None = None, message: str | None = None) -> None: ...
def log(data: Any, level: str = "info") -> None: ...
def fail(message: str) -> Never: ...
"""

_BUILTINS: Final = """
from collections.abc import Callable, Iterable
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
    ("secret(name)", "Name a secret in a header, the query or a JSON body."),
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


def prelude(*, waits: bool) -> str:
    """Return the code that runs in the sandbox before a script."""
    return _COMMON + _http_class(_METHOD, waits=waits) + "\n\nhttp = _Http()\n"


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
