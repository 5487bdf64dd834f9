"""What the code of a call says and knows, wherever it runs: none of it waits."""

from collections.abc import Callable
from datetime import datetime
from random import Random
from typing import Any, Final, Literal
from uuid import UUID

from mcphost.runtime.call import Call
from mcphost.runtime.ports import NotAnnounced
from mcphost.runtime.rounds import Round
from mcphost.sdk.errors import CapabilityMissing, ToolError

LISTS: Final = {"tools": "tool", "prompts": "prompt", "resources": "resource"}


class Speaking:
    """One call, as its tool sees it. What both contexts have.

    It may be used from any thread until the call has ended; from then on everything raises
    CallEnded.
    """

    __slots__ = ("_round",)

    def __init__(self, round: Round) -> None:
        self._round = round

    def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell the caller how far the work is, if it asked to be told.

        Progress only rises, through all rounds: a value that is not above the last one is dropped.
        """
        self._round.line.progress(progress, total, message)

    def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """Send a log message to the caller, if it asked for that level.

        `level` is one of debug, info, notice, warning, error, critical, alert, emergency; `data`
        is anything JSON can hold.
        """
        self._round.line.log(level, data, logger)

    def debug(self, data: Any, logger: str | None = None) -> None:
        self.log("debug", data, logger)

    def info(self, data: Any, logger: str | None = None) -> None:
        self.log("info", data, logger)

    def warning(self, data: Any, logger: str | None = None) -> None:
        self.log("warning", data, logger)

    def error(self, data: Any, logger: str | None = None) -> None:
        self.log("error", data, logger)

    def close_stream(self) -> None:
        """Have the client hang up, and come back in a moment for what is said from now on.

        Worth it where nothing will be said for a long time. Only clients of revision 2025-11-25 can:
        for all others it does nothing.
        """
        self._round.line.do(self._round.ports.close_stream)

    def announce(self, uri: str) -> None:
        """Tell whoever listens that what can be read at `uri` is not what it was.

        `uri` is that of one of the tenant's resources, or fits one of its templates. Call it once
        what is read there is new. The same URI announced many times in a tenth of a second is told
        once. Raises ToolError for a URI of no resource, and for too many at once.
        """
        self._open()
        self._announce(self._round.ports.announcer.updated, uri)

    def announce_list(self, name: Literal["tools", "prompts", "resources"]) -> None:
        """Tell whoever listens to a list to ask for it anew.

        What is registered and published in the admin is told by itself. This is for a list that
        means something else than before although it reads the same. Raises ValueError for another
        name, and ToolError for too many announcements at once.
        """
        if name not in LISTS:
            raise ValueError(f"{name!r} is not a list: use one of {', '.join(LISTS)}")
        self._open()
        self._announce(self._round.ports.announcer.list_changed, LISTS[name])

    def _announce(self, tell: Callable[[str], None], what: str) -> None:
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

    def done_url(self, key: str) -> str:
        """An address of this call's own: opened there, `wait_for` the same key is over.

        It is the same in every round, so it may stand in a question. Raises LinkRefused.
        """
        self._open()
        return self._round.recording.link(key)

    def now(self) -> datetime:
        """The time, in UTC, when this line first ran: the same in every round of the call."""
        self._open()
        return self._round.recording.now()

    def uuid(self) -> UUID:
        """A random UUID, the same here in every round of the call."""
        self._open()
        return self._round.recording.uuid()

    def random(self) -> Random:
        """A source of random numbers that gives the same ones in every round. Not for secrets."""
        self._open()
        return self._round.recording.random()

    @property
    def replaying(self) -> bool:
        """Whether an earlier round was here already: what is said now is not told again."""
        self._open()
        return self._round.line.silent

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
        self._round.line.check()
        return self._round.call
