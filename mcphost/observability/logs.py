"""Structured logs on standard error, human-readable (`console`) or machine-readable (`json`).

Packages log with `logging.getLogger(__name__)` and put facts into `extra`, or with
`structlog.get_logger(__name__)` and keyword arguments; both give the same line. A line never
contains a secret: redaction is the last step before it is written.
"""

import logging
import sys
from collections.abc import Hashable, MutableMapping
from typing import IO, Any

import orjson
import structlog
from structlog.types import Processor

from mcphost.observability import context, redaction

_HANDLER = "mcphost"
# Access logs of a server have less than the record, and may contain what must not be logged.
_QUIET = ("uvicorn.access", "daphne.http_protocol", "daphne.ws_protocol", "asyncio", "httpx2")


class _ToStandardError(logging.StreamHandler[IO[str]]):
    """Writes to the current `sys.stderr`, also after it was redirected."""

    @property
    def stream(self) -> IO[str]:
        return sys.stderr

    @stream.setter
    def stream(self, stream: IO[str]) -> None:
        """Ignore the stream that the base class sets."""


class FirstTimes:
    """Whether something is met for the first time in this process, so that a client that repeats a
    request does not repeat a line of the log. Of many things those met longest ago are forgotten."""

    def __init__(self, max_keys: int = 10_000) -> None:
        self._max_keys = max_keys
        self._keys: dict[Hashable, None] = {}

    def is_first(self, key: Hashable) -> bool:
        if key in self._keys:
            return False
        self._keys[key] = None
        if len(self._keys) > self._max_keys:
            del self._keys[next(iter(self._keys))]
        return True


def configure(log_format: str, level: str, stream: IO[str] | None = None) -> None:
    """Send all logs of this process to `stream` (default: standard error).

    Replaces the handler of an earlier call, and those that a server has made with
    `logging.basicConfig` (Daphne): they would write every line again, with its secrets. Does not touch
    other handlers.
    """
    handler = logging.StreamHandler(stream) if stream else _ToStandardError()
    handler.name = _HANDLER
    handler.setFormatter(formatter(log_format))
    root = logging.getLogger()
    for old in [*root.handlers]:
        if old.name == _HANDLER or type(old) is logging.StreamHandler:
            root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_facts(),
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def formatter(log_format: str) -> logging.Formatter:
    """The formatter that turns any log record into one redacted line."""
    renderer: Processor
    if log_format == "json":
        renderer = structlog.processors.JSONRenderer(serializer=_json)
    else:
        renderer = structlog.dev.ConsoleRenderer(
            colors=False, exception_formatter=structlog.dev.plain_traceback
        )
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[*_facts(), structlog.stdlib.ExtraAdder(), _drop_colours],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.StackInfoRenderer(),
            structlog.processors.format_exc_info,
            redaction.processor,
            renderer,
        ],
    )


def _facts() -> list[Processor]:
    return [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        add_request_facts,
    ]


def _drop_colours(
    logger: Any, method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Drop uvicorn's second copy of its message, with colours."""
    event.pop("color_message", None)
    return event


def add_request_facts(
    logger: Any, method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """The structlog processor that adds the current request to a line."""
    facts = context.current()
    if facts is not None:
        event.setdefault("request_id", str(facts.request))
        event.setdefault("tenant", facts.tenant)
        event.setdefault("trace_id", facts.trace)
    return event


def _json(value: Any, **_: Any) -> str:
    return orjson.dumps(value, default=repr, option=orjson.OPT_NON_STR_KEYS).decode()
