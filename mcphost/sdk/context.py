"""One call, as the function that serves it sees it."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, Literal
from uuid import UUID

from mcphost.runtime.call import Call
from mcphost.runtime.line import Line
from mcphost.runtime.ports import Announcer, NotAnnounced

LISTS: Final = {"tools": "tool", "prompts": "prompt", "resources": "resource"}


class ToolError(Exception):
    """Something the caller should read and can learn from: sent as a result with `isError`."""


class CapabilityMissing(Exception):  # noqa: N818 - a refusal that says what happened
    """The client did not declare a capability. `required` has the shape of `ClientCapabilities`."""

    def __init__(self, capability: str) -> None:
        self.capability = capability
        super().__init__(f"This tool needs a client with the capability {capability!r}.")

    @property
    def required(self) -> dict[str, Any]:
        shape: dict[str, Any] = {}
        for step in reversed(self.capability.split(".")):
            shape = {step: shape}
        return shape


class Context:
    """One call, as its tool sees it. Ask for it by a parameter of this type, or by `current()`.

    Nothing here waits, so nothing needs `await`. It may be used from any thread until the call
    has ended; from then on everything raises CallEnded.
    """

    __slots__ = ("_announcer", "_call", "_line")

    def __init__(self, call: Call, line: Line, announcer: Announcer) -> None:
        self._call = call
        self._line = line
        self._announcer = announcer

    def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell the caller how far the work is, if it asked to be told.

        Progress only rises: a value that is not above the last one is dropped.
        """
        self._line.progress(progress, total, message)

    def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """Send a log message to the caller, if it asked for that level.

        `level` is one of debug, info, notice, warning, error, critical, alert, emergency; `data`
        is anything JSON can hold.
        """
        self._line.log(level, data, logger)

    def debug(self, data: Any, logger: str | None = None) -> None:
        self._line.log("debug", data, logger)

    def info(self, data: Any, logger: str | None = None) -> None:
        self._line.log("info", data, logger)

    def warning(self, data: Any, logger: str | None = None) -> None:
        self._line.log("warning", data, logger)

    def error(self, data: Any, logger: str | None = None) -> None:
        self._line.log("error", data, logger)

    def announce(self, uri: str) -> None:
        """Tell whoever listens that what can be read at `uri` is not what it was.

        `uri` is that of one of the tenant's resources, or fits one of its templates. Call it once
        what is read there is new. The same URI announced many times in a tenth of a second is told
        once. Raises ToolError for a URI of no resource, and for too many at once.
        """
        self._announce(self._announcer.updated, uri)

    def announce_list(self, name: Literal["tools", "prompts", "resources"]) -> None:
        """Tell whoever listens to a list to ask for it anew.

        What is registered and published in the admin is told by itself. This is for a list that
        means something else than before although it reads the same. Raises ValueError for another
        name, and ToolError for too many announcements at once.
        """
        if name not in LISTS:
            raise ValueError(f"{name!r} is not a list: use one of {', '.join(LISTS)}")
        self._announce(self._announcer.list_changed, LISTS[name])

    def _announce(self, tell: Callable[[str], None], what: str) -> None:
        self._open()
        try:
            tell(what)
        except NotAnnounced as refusal:
            raise ToolError(str(refusal)) from None

    def require(self, capability: str) -> None:
        """Say what the tool cannot do without: "sampling", "elicitation.url".

        Raises CapabilityMissing if the client does not have it; uncaught, it tells the client.
        """
        if not self._open().client.can(capability):
            raise CapabilityMissing(capability)

    @property
    def tenant(self) -> UUID:
        """The tenant the call was made to."""
        return self._open().tenant

    @property
    def principal(self) -> str:
        """Who calls, in words for people; empty for anonymous callers."""
        return self._open().principal.label

    @property
    def client(self) -> str:
        """What the client calls itself. Never identity: anyone may say anything."""
        return self._open().client.name

    @property
    def call_id(self) -> UUID:
        """Names the call, the same through all of its rounds."""
        return self._open().id

    @property
    def round(self) -> int:
        """Which round of the call this is, from 1."""
        return self._open().round

    def _open(self) -> Call:
        self._line.check()
        return self._call


RUNNING: ContextVar[Context] = ContextVar("mcphost_context")
"""The context of the tool that runs here. Kinds set it for each round."""


def current() -> Context:
    """The context of the call that this code runs for.

    Known in the tool, in tasks it starts and in threads entered by `asyncio.to_thread`. Raises
    RuntimeError elsewhere.
    """
    try:
        return RUNNING.get()
    except LookupError:
        raise RuntimeError("no tool is running here") from None
