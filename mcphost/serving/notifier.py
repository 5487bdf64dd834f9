"""Progress and log messages of a call, on the stream of the request that asked for them."""

from typing import Any

from mcphost.protocol import messages
from mcphost.protocol.exchange import Exchange
from mcphost.runtime.ports import Notifier, Silence
from mcphost.serving.streams import Stream

SILENCE = Silence()


def notifier_for(exchange: Exchange, stream: Stream) -> Notifier:
    """A notifier that sends what the request opted in to, and drops the rest.

    Progress needs a `progressToken` (spec: basic/patterns/progress), log messages a `logLevel`
    (spec: server/utilities/logging).
    """
    meta = exchange.meta
    if meta.progress_token is None and meta.log_level is None:
        return SILENCE
    return StreamNotifier(stream, meta.progress_token, meta.log_level)


class StreamNotifier:
    """Writes notifications to the stream. Only ever called on the event loop's thread."""

    def __init__(self, stream: Stream, token: str | int | None, minimum: str | None) -> None:
        self._stream = stream
        self._token = token
        self._minimum = minimum

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        if self._token is not None:
            self._stream.send(messages.progress(self._token, progress, total, message))

    def log(self, level: str, data: Any, logger: str | None) -> None:
        if self._minimum is not None and messages.wants(level, self._minimum):
            self._stream.send(messages.log_message(level, data, logger))
