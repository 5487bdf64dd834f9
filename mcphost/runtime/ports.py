"""Interfaces from programs to the outside. Each port is a Protocol with a real implementation that
ships."""

import secrets
import time
from collections.abc import Awaitable, Callable, Collection
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from mcphost.egress.client import EgressLimits
from mcphost.egress.errors import EgressAddressError
from mcphost.egress.messages import OutgoingRequest, ReceivedResponse
from mcphost.runtime.call import Call
from mcphost.runtime.journal import Journal
from mcphost.runtime.outcomes import InputRequest

T = TypeVar("T")


class Clock(Protocol):
    def now(self) -> datetime:
        """Return the current time, in UTC."""


class Randomness(Protocol):
    def bytes(self, count: int) -> bytes:
        """Return `count` unpredictable bytes."""


class Notifier(Protocol):
    """Sends notifications to the caller while the call runs, only on the stream of its own request.

    Both methods return at once and never raise; notifications that were not requested are dropped.
    """

    def progress(self, progress: float, total: float | None, message: str | None) -> None: ...

    def log(self, level: str, data: Any, logger: str | None) -> None: ...


class NotAnnouncedError(Exception):
    """An announcement was refused; the message gives the reason."""


class Announcer(Protocol):
    """Notifies subscribed clients that a resource or a list has changed."""

    def updated(self, uri: str) -> None:
        """Announce a changed resource, from any thread; returns at once.

        Raises NotAnnouncedError for a URI of no resource of the tenant, and for too many at once.
        """

    def list_changed(self, name: str) -> None:
        """Announce a changed list: "tool", "prompt" or "resource".

        From any thread; returns at once. Raises NotAnnouncedError for too many announcements at once.
        """


class Threads(Protocol):
    """Runs blocking functions in threads, with the caller's context variables."""

    async def run(
        self, owner: str, function: Callable[[], T], *, tool: str = "", cap: int | None = None
    ) -> T:
        """Run `function`, counted against `owner` (a tenant) and against its `tool`, up to `cap`.

        Raises runtime.threads.PoolExhaustedError when either uses all its threads. If the awaiting task
        is cancelled, the thread counts as lost until its function ends.
        """


class Stored(NamedTuple):
    """A stored value: JSON, and its revision (0: no value is stored), unique among all values of
    the key."""

    value: Any
    revision: int


class Store(Protocol):
    """JSON that a tenant's tools store, for all callers or for one person, shared by all processes.

    All methods raise StoreRefusedError for values that cannot be stored or read.
    """

    async def get(self, key: str) -> Stored: ...

    async def put(self, key: str, value: Any, revision: int) -> bool:
        """Store `value` if the stored one has this revision (0: if nothing is stored).

        Returns False if it has another.
        """

    async def delete(self, key: str, revision: int) -> bool:
        """Delete the value if it has this revision.

        Returns False if it has another.
        """


class StoreRefusedError(Exception):
    """The store refused the value, or there is no store; the message gives the reason."""


class Links(Protocol):
    """Addresses of one call at which a person or a machine reports that something is done.

    Each call of `page` or `callback` makes a new address: code that needs the same one in every
    round must record it.
    """

    def page(self, key: str) -> str:
        """Return the address of a page on which the caller's user, signed in, confirms `key`.
        Raises LinkRefusedError."""

    def callback(self, key: str) -> str:
        """Return an address to which a machine posts when `key` is done. Raises LinkRefusedError."""

    async def wait(self, key: str, seconds: float, pages: Collection[str]) -> bool:
        """Wait until the page was confirmed or the callback was posted to; False if neither
        happened in time.

        `pages` are the addresses that the user was asked to open for this; what was to be done
        there is complete then. Raises LinkRefusedError.
        """


NO_USER: Final = (
    "This asks a user to open a URL, but the caller has no user account: use a user's credential."
)
"""Why neither a question with a URL nor a page of the platform is possible for a caller."""


class LinkRefusedError(Exception):
    """There is no such address, or waiting is not possible; the message gives the reason."""


class Http(Protocol):
    """Sends HTTP requests to addresses that the tenant may reach, with the tenant's secrets."""

    async def send(self, request: OutgoingRequest, limits: EgressLimits) -> ReceivedResponse:
        """Send a request and return the whole response. Raises egress.errors.EgressError."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.fromtimestamp(time.time(), UTC)


class SystemRandomness:
    """The operating system's randomness."""

    def bytes(self, count: int) -> bytes:
        return secrets.token_bytes(count)


class NullNotifier:
    """A notifier for calls whose caller requested no notifications."""

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        return None

    def log(self, level: str, data: Any, logger: str | None) -> None:
        return None


class NullAnnouncer:
    """An announcer without subscribers."""

    def updated(self, uri: str) -> None:
        return None

    def list_changed(self, name: str) -> None:
        return None


class NoStore:
    """A store that refuses everything, for `reason`."""

    def __init__(self, reason: str = "no store is available") -> None:
        self._reason = reason

    async def get(self, key: str) -> Stored:
        raise StoreRefusedError(self._reason)

    async def put(self, key: str, value: Any, revision: int) -> bool:
        raise StoreRefusedError(self._reason)

    async def delete(self, key: str, revision: int) -> bool:
        raise StoreRefusedError(self._reason)


class NoLinks:
    """Links that refuse everything."""

    def page(self, key: str) -> str:
        raise LinkRefusedError("links are not available")

    def callback(self, key: str) -> str:
        raise LinkRefusedError("links are not available")

    async def wait(self, key: str, seconds: float, pages: Collection[str]) -> bool:
        raise LinkRefusedError("links are not available")


class NoHttp:
    """A sender that refuses everything."""

    async def send(self, request: OutgoingRequest, limits: EgressLimits) -> ReceivedResponse:
        raise EgressAddressError("Outgoing requests are not available.")


def no_reason_to_move() -> str:
    """The port `reason_to_move` of a process that sends no call elsewhere."""
    return ""


def never_deferring() -> bool:
    """The port `may_defer` where a call cannot become a task."""
    return False


def unpublished(request: InputRequest) -> None:
    """The port `publish` where input requests are sent only at the end of a round."""


def unkept(journal: Callable[[], Journal]) -> None:
    """The port `store_journal` where a journal is kept only at the end of a round."""


def no_op() -> None:
    """The port `close_stream` where there is no stream to close."""


class Misuse(StrEnum):
    """How the context of a call was misused, as the record of that call states it."""

    OVER = "over"
    BORROWED = "borrowed"
    LENT = "lent"
    OUTSIDE = "outside"


def unreported(misuse: Misuse, other_call: Call | None) -> None:
    """The port `misused` without a report."""


class RoundLimits(NamedTuple):
    """The limits of one round. `seconds` is None where the program's own limit applies."""

    seconds: float | None = None
    result_bytes: int = 8 * 1024 * 1024


class Ports(Protocol):
    """The ports of one program during one round. Rarely used ones may be created at first use.

    `reason_to_move` is called when a step has been recorded, and returns why the call should continue in
    another process from there; empty if it should not. `may_defer` returns whether the call can become a task, which ends this round when the
    program calls `become_task`. `publish` is called on the event loop for each input request without
    an answer, as soon as it is made: other code of the round may still run for a long time. It
    returns at once and never raises. `store_journal` is called after each step with what makes the journal so
    far, and returns when that is stored, or None where it is not stored before the round ends; it
    never raises. `close_stream` makes the client disconnect, and reconnect for what follows. `misused` is
    called on the event loop for a misuse of a context: of this round's context after its end
    (`OVER`), by another call (`LENT`) or by code of no call (`OUTSIDE`), and of another call's
    context by code of this round (`BORROWED`; only then `other` is that call, for the log and never
    for the record).
    """

    @property
    def threads(self) -> Threads: ...
    @property
    def notifier(self) -> Notifier: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def randomness(self) -> Randomness: ...
    @property
    def limits(self) -> RoundLimits: ...
    @property
    def announcer(self) -> Announcer: ...
    @property
    def store(self) -> Store: ...

    @property
    def user_store(self) -> Store: ...
    @property
    def links(self) -> Links: ...
    @property
    def http(self) -> Http: ...

    def reason_to_move(self) -> str: ...

    def may_defer(self) -> bool: ...

    def publish(self, request: InputRequest) -> None: ...

    def store_journal(self, journal: Callable[[], Journal]) -> Awaitable[None] | None: ...

    def close_stream(self) -> None: ...

    def misused(self, misuse: Misuse, other_call: Call | None) -> None: ...


class FixedPorts(NamedTuple):
    """Ports with fixed implementations.

    By default, the clock and the randomness are the system's; the others do nothing or refuse.
    """

    threads: Threads
    notifier: Notifier = NullNotifier()
    clock: Clock = SystemClock()
    randomness: Randomness = SystemRandomness()
    limits: RoundLimits = RoundLimits()
    announcer: Announcer = NullAnnouncer()
    store: Store = NoStore()
    user_store: Store = NoStore()
    links: Links = NoLinks()
    http: Http = NoHttp()
    reason_to_move: Callable[[], str] = no_reason_to_move
    may_defer: Callable[[], bool] = never_deferring
    publish: Callable[[InputRequest], None] = unpublished
    store_journal: Callable[[Callable[[], Journal]], Awaitable[None] | None] = unkept
    close_stream: Callable[[], None] = no_op
    misused: Callable[[Misuse, Call | None], None] = unreported
