"""The times of a call: on the server in its rounds, and waiting between them and after the last."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from mcphost.audit.entries import EntryView
from mcphost.audit.records import ROUND_FINISHED, ROUND_STARTED
from mcphost.audit.timeline import CANCELLED, EXPIRED, LOST, OPEN, Timeline

_NOTHING = timedelta()


@dataclass(frozen=True, slots=True)
class CallTimes:
    """`server`: in all rounds together, None if none has ended. `waiting`: for input responses, for the client's next
    request, or in a queue; None if the call never waited."""

    server: timedelta | None
    waiting: timedelta | None


def times_of(call: Timeline, now: datetime) -> CallTimes:
    """The times of a call, up to `now` while it waits for an answer."""
    waiting = between_rounds(call.entries)
    after = _tail(call, now)
    if after:
        waiting = (waiting or _NOTHING) + after
    return CallTimes(on_server(call.entries), waiting)


def on_server(entries: Iterable[EntryView]) -> timedelta | None:
    """How long the rounds of a call ran, together."""
    durations = [entry.duration_us for entry in entries if entry.action == ROUND_FINISHED]
    ended = [duration for duration in durations if duration is not None]
    return timedelta(microseconds=sum(ended)) if ended else None


def between_rounds(entries: Iterable[EntryView]) -> timedelta | None:
    """How long no round ran between the first and the last of a call; None if it had only one.

    A run whose end is not recorded lasts until the next one.
    """
    runs = sorted(_runs(entries), key=lambda run: run[0])
    if len(runs) < 2:
        return None
    gaps, reached = _NOTHING, runs[0][0]
    for index, (start, end) in enumerate(runs):
        gaps += max(_NOTHING, start - reached)
        following = runs[index + 1][0] if index + 1 < len(runs) else start
        reached = max(reached, following if end is None else end)
    return gaps


def _runs(entries: Iterable[EntryView]) -> Iterator[tuple[datetime, datetime | None]]:
    """When each run of a round began and ended; None if its end is not recorded."""
    begun: dict[tuple[object, object], datetime] = {}
    for entry in entries:
        run = entry.round, entry.http_request_id
        if entry.action == ROUND_STARTED:
            begun[run] = entry.at
        elif entry.action == ROUND_FINISHED:
            begun.pop(run, None)
            yield began(entry), entry.at
    yield from ((at, None) for at in begun.values())


def began(finished: EntryView) -> datetime:
    """When the round that ended with this entry began."""
    return finished.at - timedelta(microseconds=max(0, finished.duration_us or 0))


def _tail(call: Timeline, now: datetime) -> timedelta:
    """How long the call waited after its last round, if it did."""
    ended = [entry.at for entry in call.entries if entry.action == ROUND_FINISHED]
    until = {
        OPEN: now,
        EXPIRED: call.expires_at,
        LOST: call.loss.at if call.loss else None,
        CANCELLED: call.acts[-1].at if call.acts else None,
    }.get(call.state)
    return max(_NOTHING, until - max(ended)) if until is not None and ended else _NOTHING
