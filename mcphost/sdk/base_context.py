"""The part of both contexts that never waits: notifications (which may be awaited), links, and values of
the call."""

from collections.abc import Callable, Iterator
from datetime import datetime
from random import Random
from typing import Any, Final, Literal
from uuid import UUID

from mcphost.runtime.call import CallUser
from mcphost.runtime.ports import NotAnnouncedError
from mcphost.runtime.rounds import Round
from mcphost.sdk.errors import CapabilityMissingError, ToolError

LISTS: Final = {"tools": "tool", "prompts": "prompt", "resources": "resource"}


class Notified:
    """The return value of methods that send something. Awaiting it does nothing: code written for
    frameworks in which these methods are coroutines works unchanged."""

    __slots__ = ()

    def __await__(self) -> Iterator[None]:
        return iter(())


NOTIFIED: Final = Notified()


class BaseContext:
    """One call, for the code of its tool: the members that both contexts have.

    Only code of the call may use it: the function, its tasks, and threads entered by
    `ctx.in_thread`, `asyncio.to_thread` or `sync_to_async`. All other code gets ForeignContextError, and
    after the call every member raises CallEndedError.
    """

    __slots__ = ("_own",)

    def __init__(self, round: Round) -> None:
        self._own = round

    @property
    def _round(self) -> Round:
        """The round, for code that runs in it. Every member uses this property, so none is
        unguarded.

        Raises CallEndedError and ForeignContextError.
        """
        round = self._own
        round.guard()
        return round

    def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Notified:
        """Send the progress to the caller, if it requested progress notifications.

        Progress must increase, through all rounds: a value that is not above the last one is
        dropped.
        """
        self._round.channel.progress(progress, total, message)
        return NOTIFIED

    report_progress = progress
    """The same, under the name that it has in other frameworks."""

    def log(self, level: str, data: Any, logger: str | None = None) -> Notified:
        """Send a log message to the caller, if it requested messages of that level.

        `level` is one of debug, info, notice, warning, error, critical, alert, emergency; `data` is
        any JSON.
        """
        self._round.channel.log(level, data, logger)
        return NOTIFIED

    def debug(self, data: Any, logger: str | None = None) -> Notified:
        return self.log("debug", data, logger)

    def info(self, data: Any, logger: str | None = None) -> Notified:
        return self.log("info", data, logger)

    def warning(self, data: Any, logger: str | None = None) -> Notified:
        return self.log("warning", data, logger)

    def error(self, data: Any, logger: str | None = None) -> Notified:
        return self.log("error", data, logger)

    def close_stream(self) -> Notified:
        """Make the client disconnect, and reconnect in a moment for later notifications.

        Useful if nothing will be sent for a long time. Only clients of revision 2025-11-25 support
        it: for all others it has no effect.
        """
        round = self._round
        round.channel.do(round.ports.close_stream)
        return NOTIFIED

    def announce(self, uri: str) -> Notified:
        """Notify subscribed clients that the resource at `uri` has changed.

        `uri` is that of one of the tenant's resources, or matches one of its templates. Call it
        after the change. Announcements of the same URI within a tenth of a second are sent once.
        Raises ToolError for a URI of no resource, and for too many announcements at once.
        """
        return self._announce(self._round.ports.announcer.updated, uri)

    def announce_list(self, name: Literal["tools", "prompts", "resources"]) -> Notified:
        """Notify subscribed clients that a list has changed, so that they request it again.

        Changes that are made and published in the console are announced automatically. This is for a
        list whose meaning has changed although its text has not. Raises ValueError for another
        name, and ToolError for too many announcements at once.
        """
        if name not in LISTS:
            raise ValueError(f"{name!r} is not a list: use one of {', '.join(LISTS)}")
        return self._announce(self._round.ports.announcer.list_changed, LISTS[name])

    def _announce(self, send: Callable[[str], None], subject: str) -> Notified:
        try:
            send(subject)
        except NotAnnouncedError as refusal:
            raise ToolError(str(refusal)) from None
        return NOTIFIED

    def require(self, capability: str) -> Notified:
        """Require a client capability: "sampling", "elicitation.url".

        Raises CapabilityMissingError if the client does not have it; if not caught, it is sent to the
        client.
        """
        call = self._round.call
        if not call.client.can(capability):
            raise CapabilityMissingError(capability, call.method)
        return NOTIFIED

    def done_url(self, key: str) -> str:
        """Return the address of a page of this call, on which its user confirms `key`.

        Only the person whose credential the caller uses can confirm it: signed in, and by pressing
        a button. Opening the page changes nothing. The confirmation ends `wait_for` with the same
        key. The address is the same in every round, so it may be part of a question (`ask_url`).
        Raises LinkRefusedError for callers without a person (anonymous callers, service accounts), and
        for a key of a callback.
        """
        return self._round.recording.page(key)

    def callback(self, key: str) -> str:
        """Return the address of this call to which a machine posts, without a credential, when
        `key` is done.

        The post ends `wait_for` with the same key. Any machine that has the address can post to it:
        a post is a hint to check, and proves nothing about a person. The address is the same in
        every round. Raises LinkRefusedError for anonymous callers, and for a key of a page.
        """
        return self._round.recording.callback(key)

    def now(self) -> datetime:
        """The time, in UTC, when this line first ran: the same in every round of the call."""
        return self._round.recording.now()

    def uuid(self) -> UUID:
        """A random UUID, the same here in every round of the call."""
        return self._round.recording.uuid()

    def random(self) -> Random:
        """Return a generator of random numbers, the same ones in every round. Not for secrets."""
        return self._round.recording.random()

    @property
    def replaying(self) -> bool:
        """Whether an earlier round already reached this point: notifications are not sent again."""
        return self._round.channel.silent

    @property
    def tenant(self) -> UUID:
        """The tenant that the call was made to."""
        return self._round.call.tenant

    @property
    def user(self) -> CallUser | None:
        """The person behind the call, the same for all their tokens; None for anonymous callers and
        service accounts."""
        return self._round.call.principal.user

    @property
    def principal(self) -> str:
        """The caller, as a label for people, with the name of its token; empty for anonymous callers.
        Never an identity: use `user`."""
        return self._round.call.principal.label

    @property
    def client(self) -> str:
        """The client's name for itself. Never identity: a client may send any name."""
        return self._round.call.client.name

    @property
    def call_id(self) -> UUID:
        """The id of the call, the same in all of its rounds."""
        return self._round.call.id

    @property
    def round(self) -> int:
        """The number of the current round of the call, from 1."""
        return self._round.call.round
