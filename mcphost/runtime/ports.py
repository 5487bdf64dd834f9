"""What a program may use of the outside. Each port is a Protocol; every one has a real version that ships."""

import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    def now(self) -> datetime:
        """The present, in UTC."""


class Randomness(Protocol):
    def bytes(self, count: int) -> bytes:
        """`count` bytes that nobody can guess."""


class Notifier(Protocol):
    """Tells the caller about the call while it runs, on the stream of its own request only.

    Both methods return at once and never raise; what was not asked for is dropped.
    """

    def progress(self, progress: float, total: float | None, message: str | None) -> None: ...

    def log(self, level: str, data: Any, logger: str | None) -> None: ...


class NotAnnounced(Exception):  # noqa: N818 - a refusal that says what happened
    """An announcement was not taken, and why."""


class Announcer(Protocol):
    """Tells whoever listens that something is not what it was, and worth asking for anew."""

    def updated(self, uri: str) -> None:
        """Announce it, from any thread; returns at once.

        Raises NotAnnounced for a URI of no resource of the tenant, and for too many at once.
        """

    def list_changed(self, name: str) -> None:
        """Announce that a list is to be asked for anew: "tool", "prompt" or "resource".

        From any thread; returns at once. Raises NotAnnounced for too many announcements at once.
        """


class Threads(Protocol):
    """Runs a blocking function in a thread of its own, with the caller's context variables."""

    async def run(
        self, owner: str, function: Callable[[], T], *, tool: str = "", cap: int | None = None
    ) -> T:
        """Run `function`, counted against `owner` (a tenant) and against its `tool`, up to `cap`.

        Raises runtime.threads.PoolExhausted when either has all its threads in use. When the
        awaiting task is cancelled the thread is counted as lost until it ends by itself.
        """


class Stored(NamedTuple):
    """What is kept under a key: JSON, and its revision (0: there is nothing), which no other value of
    that key ever had."""

    value: Any
    revision: int


class Store(Protocol):
    """JSON that the tenant keeps for its tools, shared by all processes.

    All raise StoreRefused for what cannot be kept or read.
    """

    async def get(self, key: str) -> Stored: ...

    async def put(self, key: str, value: Any, revision: int) -> bool:
        """Keep `value` if what is there still has that revision (0: if there is nothing).

        False when it has another.
        """

    async def delete(self, key: str, revision: int) -> bool:
        """Keep nothing there any more, if what is there still has that revision.

        False when it has another.
        """


class StoreRefused(Exception):  # noqa: N818 - a refusal that says what happened
    """The store did not take it, or there is none; the message says why."""


class Links(Protocol):
    """Addresses at which somebody else says that something is done, of this call only."""

    def url(self, key: str) -> str:
        """An address for `key`, another each time: who needs the same in every round keeps it.

        Raises LinkRefused.
        """

    async def wait(self, key: str, seconds: float) -> bool:
        """Wait until it was said there; False if it was not in time. Raises LinkRefused."""


class LinkRefused(Exception):  # noqa: N818 - a refusal that says what happened
    """There is no such address, or no waiting; the message says why."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.fromtimestamp(time.time(), UTC)


class SystemRandomness:
    """The operating system's randomness."""

    def bytes(self, count: int) -> bytes:
        return secrets.token_bytes(count)


class Silence:
    """A notifier for calls whose caller asked for no notifications."""

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        return None

    def log(self, level: str, data: Any, logger: str | None) -> None:
        return None


class Unheard:
    """An announcer where nobody listens."""

    def updated(self, uri: str) -> None:
        return None

    def list_changed(self, name: str) -> None:
        return None


class NoStore:
    """A store where there is none."""

    async def get(self, key: str) -> Stored:
        raise StoreRefused("nothing is kept here")

    async def put(self, key: str, value: Any, revision: int) -> bool:
        raise StoreRefused("nothing is kept here")

    async def delete(self, key: str, revision: int) -> bool:
        raise StoreRefused("nothing is kept here")


class NoLinks:
    """Links where nobody can open any."""

    def url(self, key: str) -> str:
        raise LinkRefused("nobody can be waited for here")

    async def wait(self, key: str, seconds: float) -> bool:
        raise LinkRefused("nobody can be waited for here")


def stay() -> bool:
    """A process that is there to stay: no call need go elsewhere."""
    return False


def nothing() -> None:
    """What is done where there is nothing to be done."""


class Limits(NamedTuple):
    """What one round may take. `seconds` is None where the program's own limit holds."""

    seconds: float | None = None
    result_bytes: int = 8 * 1024 * 1024


class Ports(NamedTuple):
    """The outside, as one program sees it during one round.

    `leaving` says whether the call had better go on in another process, from its next recorded step.
    `close_stream` has the caller hang up, and come back for what follows. `late` is called, on the
    event loop, when the program uses what it was given after its round has ended.
    """

    threads: Threads
    notifier: Notifier = Silence()
    clock: Clock = SystemClock()
    randomness: Randomness = SystemRandomness()
    limits: Limits = Limits()
    announcer: Announcer = Unheard()
    store: Store = NoStore()
    links: Links = NoLinks()
    leaving: Callable[[], bool] = stay
    close_stream: Callable[[], None] = nothing
    late: Callable[[], None] = nothing
