"""Calls that are answered on a stream. One process at a time owns a call, and only it writes to the
stream. Starting and concluding a round are conditions of the round's audit records.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from mcphost.audit.writer.conditions import Condition, RowChange
from mcphost.calls import questions, streams
from mcphost.calls.claims import LEASE
from mcphost.calls.conditions_sql import change
from mcphost.calls.models import StreamedCall
from mcphost.calls.questions import RoundQuestions
from mcphost.calls.states import CallState
from mcphost.calls.streams import Event, StreamRow
from mcphost.feed import nodes
from mcphost.feed.services import announce

OPEN: Final = (CallState.RUNNING, CallState.WAITING)
NO_OWNER: Final = UUID(int=0)
"""The owner of a released call: no process."""
CANCELLED: Final = "cancelled"
"""The name of the change in the change log: a client cancelled its request."""
RELEASED: Final = "released"
"""The name of the change in the change log: a process released a call that can go on at once."""
FOUND_AT_ONCE: Final = 200


class SupersededError(Exception):
    """The call is over, or another process owns it: this process must not go on with it."""


class CallOwner(NamedTuple):
    """One taking of a call by a process: the `epoch`th of this call."""

    call: UUID
    owner: UUID
    epoch: int


class StoredCall(NamedTuple):
    """A call that begins to stream. `request_name` is the id by which its client may cancel it;
    `request` is sealed."""

    id: UUID
    request_name: str
    request: str


class Batch(NamedTuple):
    """Events that are written together. `kept` is how long they are stored; `told`: notify other
    processes of them."""

    events: Sequence[Event]
    kept: timedelta
    told: bool = False


class TakenOver(NamedTuple):
    """A call taken over from another process. `last` is the number of its stream's last event."""

    owner: CallOwner
    stream: StreamRow
    call: StoredCall
    state: CallState
    round: int
    journal: str
    reply: str
    last: int


class WaitingCall(NamedTuple):
    """The questions that a call waits for, and the sealed journal for the next round."""

    journal: str
    asked: RoundQuestions


@transaction.atomic
def begin(taking: CallOwner, stream: StreamRow, call: StoredCall, batch: Batch) -> None:
    """Write a stream, its call and first events. A repetition does nothing.

    Raises SupersededError.
    """
    _begin(taking, stream, call, batch.kept)
    _append(taking, stream, batch)


@transaction.atomic
def append(taking: CallOwner, stream: StreamRow, batch: Batch) -> None:
    """Write events. Raises SupersededError."""
    _append(taking, stream, batch)


@transaction.atomic
def ask(
    taking: CallOwner,
    stream: StreamRow,
    batch: Batch,
    waiting: WaitingCall,
    opening: StoredCall | None = None,
) -> None:
    """Write the questions of a round and their events, and put the call into `waiting`.

    `opening` is the call if it is not written yet. A repetition does nothing.

    Raises SupersededError.
    """
    if opening is not None:
        _begin(taking, stream, opening, batch.kept)
    mine = _of(taking).filter(state__in=OPEN, round=waiting.asked.round)
    waits = {"state": CallState.WAITING, "journal": waiting.journal, "reply": ""}
    if not mine.update(**waits, expires_at=timezone.now() + batch.kept):
        raise SupersededError
    questions.ask(waiting.asked)
    _write(stream, batch)


@transaction.atomic
def finish(
    taking: CallOwner,
    stream: StreamRow,
    batch: Batch,
    state: CallState = CallState.FINISHED,
) -> None:
    """Write the last events of a call, and end the call, its questions and its stream.

    A repetition does nothing. Raises SupersededError.
    """
    mine = _of(taking).filter(state__in=(*OPEN, CallState.CANCELLED, state))
    over = {"state": state, "request": "", "journal": "", "reply": ""}
    if not mine.update(**over, expires_at=timezone.now() + batch.kept):
        raise SupersededError
    questions.forget(taking.call)
    _write(stream, batch, last=True)


@transaction.atomic
def cancel(session: UUID, tenant: UUID, request_name: str) -> None:
    """Cancel a request of the session, and notify its owner process."""
    of_name = StreamedCall.objects.filter(session=session, request_id=request_name)
    for call in of_name.filter(state__in=OPEN).values_list("id", flat=True):
        if of_name.filter(id=call, state__in=OPEN).update(state=CallState.CANCELLED):
            questions.cancel(call)
    announce(CANCELLED, tenant=tenant, object_id=request_name)


@transaction.atomic
def release(taking: CallOwner, tenant: UUID, *, told: bool) -> None:
    """Release a waiting call for any process. `told`: it can go on now, so notify the others.

    Does nothing for a call that is released already or owned by another process.
    """
    mine = _of(taking).filter(state=CallState.WAITING)
    if mine.update(owner=NO_OWNER) and told:
        announce(RELEASED, tenant=tenant, object_id=taking.call.hex)


def orphans(process: UUID, **which: UUID) -> tuple[UUID, ...]:
    """Calls that are released or whose owner process is dead, as seen by `process`, which is alive.

    At most FOUND_AT_ONCE. `which` filters by column values.
    """
    left = StreamedCall.objects.exclude(request="").filter(**which)
    free = Q(owner=NO_OWNER)
    if nodes.can_judge():
        free |= Q(taken_at__lte=Now() - LEASE) & ~Q(owner__in=(process, *nodes.living()))
    ids = left.filter(free).order_by("taken_at").values_list("id", flat=True)
    return tuple(ids[:FOUND_AT_ONCE])


class Takeover:
    """Takes over a call that no living process owns. If it is called again because the result of a
    commit is unknown, it recognizes its own taking. A process has one per call at a time."""

    def __init__(self, call: UUID, process: UUID) -> None:
        self._call = call
        self._process = process
        self._epoch: int | None = None

    @transaction.atomic
    def __call__(self) -> TakenOver | None:
        """Take the call over; None if another process owns it, or if it is over."""
        row = StreamedCall.objects.select_for_update().filter(id=self._call).first()
        if row is None:
            return None
        if not (row.owner == self._process and row.epoch == self._epoch):
            if self._call not in orphans(self._process, id=self._call):  # the row is locked by now
                return None
            self._epoch = row.epoch + 1
            StreamedCall.objects.filter(id=self._call).update(
                owner=self._process, epoch=self._epoch, taken_at=timezone.now()
            )
        return TakenOver(
            CallOwner(self._call, self._process, self._epoch),
            StreamRow(row.stream, row.tenant, row.session),
            StoredCall(self._call, row.request_id, row.request),
            CallState(row.state),
            row.round,
            row.journal,
            row.reply,
            streams.last(row.stream),
        )


def _begin(taking: CallOwner, stream: StreamRow, call: StoredCall, kept: timedelta) -> None:
    streams.begin(stream, kept)
    row = StreamedCall(
        id=call.id,
        tenant=stream.tenant,
        session=stream.session,
        stream=stream.id,
        request_id=call.request_name,
        request=call.request,
        state=CallState.RUNNING,
        owner=taking.owner,
        epoch=taking.epoch,
        taken_at=timezone.now(),
        expires_at=timezone.now() + kept,
    )
    StreamedCall.objects.bulk_create([row], ignore_conflicts=True)


def _append(taking: CallOwner, stream: StreamRow, batch: Batch) -> None:
    mine = _of(taking).exclude(request="")  # or cancelled: the owner may not have noticed it yet
    if not mine.update(expires_at=timezone.now() + batch.kept):
        raise SupersededError
    _write(stream, batch)


def _write(stream: StreamRow, batch: Batch, *, last: bool = False) -> None:
    streams.add(stream.id, stream.tenant, batch.events, batch.kept, last=last)
    if batch.told:
        streams.tell(streams.NEWS, [stream])


def _of(taking: CallOwner) -> QuerySet[StreamedCall]:
    return StreamedCall.objects.filter(id=taking.call, owner=taking.owner, epoch=taking.epoch)


@transaction.atomic
def prune() -> int:
    """Delete up to 500 expired calls; return how many."""
    over = StreamedCall.objects.filter(expires_at__lt=Now()).order_by("expires_at")
    ids = list(over.values_list("id", flat=True)[: streams.PRUNED_AT_ONCE])
    StreamedCall.objects.filter(id__in=ids).delete()
    return len(ids)


def start_round(taking: CallOwner, number: int) -> Condition:
    """Condition: the call waits after the previous round and is this taking's. Starts the round."""
    return _round_condition(_START, taking, number, dict)


def conclude_round(taking: CallOwner, number: int, reply: Callable[[], str]) -> Condition:
    """Condition: the round runs and is this taking's. Ends it, with a reply that is to be sent.

    `reply` is called in the writer's thread; its result must not be empty.
    """
    return _round_condition(_CONCLUDE, taking, number, lambda: {"reply": reply()})


def _round_condition(
    what: RowChange, taking: CallOwner, number: int, more: Callable[[], Mapping[str, Any]]
) -> Condition:
    nonce = f"{taking.call.hex} {number}"

    def row() -> Mapping[str, Any]:
        # The call's id comes first: rows are sorted by their text.
        named = {"call": taking.call.hex, "round": number, "nonce": nonce}
        return {**named, "owner": taking.owner.hex, "epoch": taking.epoch, **more()}

    return Condition(what, nonce, row)


_COLUMNS: Final = {
    "call": "uuid",
    "round": "bigint",
    "nonce": "text",
    "owner": "uuid",
    "epoch": "bigint",
    "reply": "text",
}
_CALL: Final = "calls_streamedcall"
_MINE: Final = f"{_CALL}.id = r.call AND {_CALL}.owner = r.owner AND {_CALL}.epoch = r.epoch"


def _round_change(changes: str, before: str, after: str) -> RowChange:
    running = f"{_CALL}.state = '{CallState.RUNNING}' AND {_CALL}.round = r.round"
    return change(
        _COLUMNS,
        f"UPDATE {_CALL} SET {changes} FROM {{r}} WHERE {_MINE} AND {before} "  # noqa: S608 - constants
        f"RETURNING {{hex}}{_CALL}.id{{end}} || ' ' || {_CALL}.round AS nonce",
        f"SELECT r.nonce FROM {{r}}, {_CALL} WHERE {_MINE} AND {running} AND {after}",  # noqa: S608
    )


_START = _round_change(
    f"state = '{CallState.RUNNING}', round = r.round",
    f"{_CALL}.state = '{CallState.WAITING}' AND {_CALL}.round = r.round - 1",
    f"{_CALL}.reply = ''",
)
_CONCLUDE = _round_change(
    "reply = r.reply",
    f"{_CALL}.state = '{CallState.RUNNING}' AND {_CALL}.round = r.round AND {_CALL}.reply = ''",
    f"{_CALL}.reply <> ''",
)
