"""Wake-ups between processes, sent and received in a loop over the channel layer: read the change log now.

They carry no content: if one is lost, or cannot be sent while Redis is down, the next regular poll
of the change log finds the rows. So nothing here can fail or delay a request.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import uuid4

from mcphost.feed.loop import loop as feed

GROUP = "mcphost.feed"
BEACON_SECONDS = 5.0
"""How often each process sends a beacon, which it also receives itself if all is well."""
AGAIN_SECONDS = 1.0

log = logging.getLogger(__name__)
# It logs a traceback every second while Redis is down; this module logs that once.
logging.getLogger("channels_redis.pubsub").setLevel(logging.CRITICAL + 1)


class Wakeups:
    """Sends and receives wake-ups on a channel of this process, on an event loop in its own thread.

    `layer` makes the channel layer; if it returns None (`REDIS_URL` is not set), nothing is started
    or sent. `wake` is called when another process has written to the change log.
    """

    def __init__(
        self,
        layer: Callable[[], Any | None],
        wake: Callable[[], None] = feed.wake,
        beacon: float = BEACON_SECONDS,
    ) -> None:
        self._layer_of = layer
        self._wake = wake
        self._beacon = beacon
        self._name = uuid4().hex
        self._problem: str | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        layer = self._layer_of()
        if layer is None:
            return
        self._news = asyncio.Event()
        self._end = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._run_loop, args=(layer,), name="mcphost-wakeups", daemon=True
        )
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """End the thread, waiting at most `timeout` seconds."""
        if self._thread is not None:
            self._call(self._end.set)
            self._thread.join(timeout)
            self._loop = self._thread = None

    def send(self) -> None:
        """Wake the other processes, soon. From any thread; several at once become one message."""
        if self._loop is not None:
            self._call(self._news.set)

    def problem(self) -> str | None:
        """The health probe: what is wrong; None while wake-ups arrive or are not in use."""
        return self._problem

    def _call(self, callback: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop has just been closed
            if self._loop is not None:
                self._loop.call_soon_threadsafe(callback)

    def _run_loop(self, layer: Any) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:  # type: ignore[arg-type, return-value]
            runner.run(self._until_end(layer))

    async def _until_end(self, layer: Any) -> None:
        work = asyncio.ensure_future(self._reconnect(layer))
        await self._end.wait()
        while not work.done():
            self._news.set()  # ends `_send`
            work.cancel()
            await asyncio.wait((work,), timeout=AGAIN_SECONDS)

    async def _reconnect(self, layer: Any) -> None:
        # The end is asked for beside the cancellation: a task group whose child fails while it is
        # cancelled raises that failure instead of the cancellation.
        while not self._end.is_set():
            try:
                await self._exchange(layer)
            except Exception as error:  # noqa: BLE001 - the layer raises what Redis raises
                if not self._end.is_set():
                    self._report_unreachable(error)
            finally:
                with suppress(Exception):
                    async with asyncio.timeout(AGAIN_SECONDS):
                        await layer.flush()
            with suppress(TimeoutError):
                async with asyncio.timeout(AGAIN_SECONDS):
                    await self._end.wait()

    async def _exchange(self, layer: Any) -> None:
        """Receive and send wake-ups until either fails."""
        async with asyncio.timeout(self._beacon):
            channel = await layer.new_channel()
            await layer.group_add(GROUP, channel)
        self._news.set()
        async with asyncio.TaskGroup() as both:
            listening = both.create_task(self._listen(layer, channel))
            both.create_task(self._send(layer, listening))

    async def _listen(self, layer: Any, channel: str) -> None:
        while True:
            async with asyncio.timeout(3 * self._beacon):  # at least our own beacons must arrive
                message = await layer.receive(channel)
            if self._problem is not None:
                log.info("Redis is reachable again: other processes learn of changes at once")
                self._problem = None
            if message["news"] and message["by"] != self._name:
                self._wake()

    async def _send(self, layer: Any, listening: "asyncio.Task[None]") -> None:
        """Send until `listening` has ended. It does not rely on being cancelled: the client library
        loses a cancellation now and then."""
        while not (self._end.is_set() or listening.done()):
            with suppress(TimeoutError):
                async with asyncio.timeout(self._beacon):
                    await self._news.wait()
            news = self._news.is_set()
            self._news.clear()
            message = {"type": "feed.news", "by": self._name, "news": news}
            async with asyncio.timeout(self._beacon):
                await layer.group_send(GROUP, message)

    def _report_unreachable(self, error: BaseException) -> None:
        if self._problem is None:
            problem = "Redis is unreachable: other processes learn of changes with a delay"
            log.warning("%s (%s)", problem, _kinds(error))
            self._problem = problem


def _kinds(error: BaseException) -> str:
    """The names of the exception types. The text may contain the URL with its password."""
    if isinstance(error, ExceptionGroup):
        return ", ".join(_kinds(member) for member in error.exceptions)
    return type(error).__name__
