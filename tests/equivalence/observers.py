"""What can be observed of the path from outside: responses, records, metrics, log lines."""

import hmac
import json
import logging
import re
import threading
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any
from uuid import UUID

import orjson

from mcphost.audit.models import Entry, Payload
from mcphost.audit.ports import payload_cipher
from mcphost.observability import counters, logs
from mcphost.vault.payloads import VaultPayloadCipher, commitment
from tests.legacy import Event

Json = dict[str, Any]
BESIDE_THE_PATH = ("change_log_", "loop_", "commit_")
"""Beginnings of names of metrics that depend on other threads than those of the path."""
PROBED = frozenset(
    {
        "threads_busy",
        "threads_idle",
        "threads_lost",
        "database_waiting",
        "records_waiting",
        "overloaded",
        "shares_over",
        "shares_limit_seconds",
        "processes_free",
        "summaries_lag_seconds",
    }
)
QUIET = ("mcphost.feed", "mcphost.observability.loop_watch", "mcphost.serving.process")
"""Loggers of what runs beside the path."""


class Exchanges:
    """Wraps the ASGI application, and keeps what each request and its response consist of."""

    def __init__(self, application: Callable[..., Awaitable[None]]) -> None:
        self._application = application
        self._kept: list[tuple[str, list[bytes], list[Json]]] = []
        self.at_end: Callable[[], Awaitable[int]] | None = None

    async def __call__(self, scope: Mapping[str, Any], receive: Any, send: Any) -> None:
        received: list[bytes] = []
        sent: list[Json] = []
        self._kept.append((f"{scope['method']} {scope['path']}", received, sent))

        async def take() -> Any:
            event = await receive()
            received.append(event.get("body", b""))
            return event

        async def note(event: Json) -> None:
            last = event["type"] == "http.response.body" and not event.get("more_body", False)
            extra = {"recorded": await self.at_end()} if last and self.at_end is not None else {}
            sent.append({**event, **extra})
            await send(event)

        await self._application(scope, take, note)

    def clear(self) -> None:
        self._kept.clear()

    def read(self) -> list[Json]:
        return [
            {"request": f"{line} {_summary(b''.join(received))}".rstrip(), **_response(sent)}
            for line, received, sent in self._kept
        ]


def _summary(body: bytes) -> str:
    try:
        message = orjson.loads(body)
    except orjson.JSONDecodeError:
        return f"({len(body)} bytes)" if body else ""
    if not isinstance(message, dict):
        return f"({type(message).__name__})"
    params = message.get("params")
    name = params.get("name", "") if isinstance(params, dict) else ""
    return f"{message.get('method', 'response')} {name}".rstrip()


def _response(sent: list[Json]) -> Json:
    if not sent:
        return {"response": None}
    start, *parts = sent
    headers = [f"{name.decode()}: {value.decode()}" for name, value in start["headers"]]
    whole = b"".join(part["body"] for part in parts)
    response: Json = {"status": start["status"], "headers": headers}
    if "content-type: text/event-stream" in headers:
        response["events"] = [_event(frame) for frame in whole.split(b"\n\n") if frame]
    else:
        response["body"] = _content(whole)
        response["parts"] = len(parts)
    response["ended"] = bool(parts) and not parts[-1].get("more_body", False)
    if "recorded" in sent[-1]:
        response["records when it ended"] = sent[-1]["recorded"]
    return response


def _event(frame: bytes) -> Any:
    event = Event.read(frame)
    if not event.data.startswith(b"{") or event.id or event.retry is not None:
        fields = {"id": event.id, "retry": event.retry, "data": _content(event.data)}
        return {name: value for name, value in fields.items() if value} or frame.decode()
    return {"data": _content(event.data)}


def _content(body: bytes) -> Any:
    """The JSON value, if it is written exactly as the product does; else the text."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode()
    return value if orjson.dumps(value) == body else body.decode()


def known() -> frozenset[UUID]:
    return frozenset(Entry.objects.values_list("id", flat=True))


def entries(before: Collection[UUID]) -> list[Json]:
    """All records but those `before`, with their payloads; empty columns are left out."""
    payloads = {row.entry: row for row in Payload.objects.all()}
    rows = Entry.objects.order_by("id")
    return [_entry(row, payloads.get(row.id)) for row in rows if row.id not in before]


def _entry(row: Entry, payload: Payload | None) -> Json:
    columns = {name.attname: getattr(row, name.attname) for name in Entry._meta.concrete_fields}
    committed = columns.pop("commitment")
    columns = {name: value for name, value in columns.items() if value not in (None, "", {})}
    if payload is not None:
        columns["payload"] = _opened(row, payload, bytes(committed))
    return {name: json.loads(json.dumps(value, default=str)) for name, value in columns.items()}


def _opened(row: Entry, payload: Payload, committed: bytes) -> Any:
    cipher = payload_cipher()
    assert isinstance(cipher, VaultPayloadCipher)
    assert payload.tenant == row.tenant
    salt, plain = cipher.open_with_salt(payload.tenant, payload.key_id, bytes(payload.ciphertext))
    assert hmac.compare_digest(commitment(salt, plain), committed)
    return _content(plain)


Metric = tuple[float, tuple[int, ...]]


def metrics() -> dict[str, Metric]:
    return {
        f"{family.name}{{{','.join(sample.labels)}}}".removesuffix("{}"): (
            sample.amount,
            sample.buckets,
        )
        for family in counters.metrics.families.values()
        if family.name not in PROBED and not family.name.startswith(BESIDE_THE_PATH)
        for sample in family.read()
    }


def changes(before: Mapping[str, Metric], after: Mapping[str, Metric]) -> Json:
    """How each series that changed has changed: a number, or the sum and the buckets."""
    found: Json = {}
    for name, (amount, buckets) in sorted(after.items()):
        old, old_buckets = before.get(name, (0.0, (0,) * len(buckets)))
        if not buckets and amount != old:
            found[name] = amount - old
        elif buckets != old_buckets:
            counts = [new - past for new, past in zip(buckets, old_buckets, strict=True)]
            rounded = round(amount - old, 6)
            found[name] = {
                "sum": rounded,
                "buckets": {str(at): n for at, n in enumerate(counts) if n},
            }
    return found


_SECONDS = re.compile(r"for \d+\.\d+ s\b")
"""Real time, which scenarios cannot stop: how long the database was unavailable."""
_FRAMES = re.compile(r"(?<=Traceback \(most recent call last\):)\n.*\n(?=\S)", re.DOTALL)


def _plain(text: str) -> str:
    return _SECONDS.sub("for some seconds", _FRAMES.sub("\n", text.rstrip()))


class LogLines(logging.Handler):
    """Keeps the lines of the product's log as JSON, as operators get them, from INFO on."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.setFormatter(logs.formatter("json"))
        self._thread = threading.get_ident()
        self._lines: list[tuple[bool, Json]] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.startswith(QUIET):
            return
        line = json.loads(self.format(record))
        del line["timestamp"], line["event"]  # the event is the message, quoted
        told = {name: _plain(one) if isinstance(one, str) else one for name, one in line.items()}
        self._lines.append((record.thread != self._thread, told))

    def clear(self) -> None:
        self._lines.clear()

    def read(self) -> list[Json]:
        """All lines; those of other threads come last, because their place is not determined."""
        lines = sorted(self._lines, key=lambda one: one[0])
        return [{"thread": "other", **line} if other else line for other, line in lines]
