"""Calls that are answered on a stream: one process at a time has each, and nobody else writes for it.

Every change names the taking by which a process has the call, and does nothing for one that was
superseded. What is kept of a call is opaque here.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from mcphost.calls import questions, streams
from mcphost.calls.models import StreamedCall
from mcphost.calls.questions import Asked
from mcphost.calls.selectors import LEASE
from mcphost.calls.states import CallState
from mcphost.calls.streams import Event, StreamRow
from mcphost.feed import nodes
from mcphost.feed.services import announce

OPEN: Final = (CallState.RUNNING, CallState.WAITING)
NOBODY: Final = UUID(int=0)
"""Stands for the process that has a call which was let go."""
CALLED_OFF: Final = "cancelled"
"""What the feed calls it that a client called its request off."""
RELEASED: Final = "released"
"""And that a process has let a call go which can go on at once."""
FOUND_AT_ONCE: Final = 200


class SupersededError(Exception):
    """The call is over, or another process has it: what this one does is not the call's any more."""


class Taking(NamedTuple):
    """A call as one process has it, for the `epoch`th time it was taken."""

    call: UUID
    owner: UUID
    epoch: int


class CallRow(NamedTuple):
    """A call that begins to stream. `request_name` is what its client may call it off by; `request`
    is sealed."""

    id: UUID
    request_name: str
    request: str


class Batch(NamedTuple):
    """Events that are written together. `kept` says for how long, `told` whether other processes are
    to be told of them."""

    events: Sequence[Event]
    kept: timedelta
    told: bool = False


class Adopted(NamedTuple):
    """A call as another process has left it. `last` is the number of the last event of its stream."""

    taking: Taking
    stream: StreamRow
    call: CallRow
    state: CallState
    round: int
    journal: str
    reply: str
    last: int


class Waiting(NamedTuple):
    """A call that waits for what a round asked; the next goes on from `journal`, sealed."""

    journal: str
    asked: Asked


@transaction.atomic
def begin(taking: Taking, stream: StreamRow, call: CallRow, batch: Batch) -> None:
    """Write a stream and the call that is answered there. A second time does nothing.

    Raises SupersededError.
    """
    _begin(taking, stream, call, batch.kept)
    _append(taking, stream, batch)


@transaction.atomic
def append(taking: Taking, stream: StreamRow, batch: Batch) -> None:
    """Write events. Raises SupersededError."""
    _append(taking, stream, batch)


@transaction.atomic
def ask(
    taking: Taking,
    stream: StreamRow,
    batch: Batch,
    waiting: Waiting,
    opening: CallRow | None = None,
) -> None:
    """Write events that ask, and have the call wait; `opening` is a call that is not written yet.

    A second time does nothing. Raises SupersededError.
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
    taking: Taking,
    stream: StreamRow,
    batch: Batch,
    state: CallState = CallState.FINISHED,
) -> None:
    """Write the last events of the call, and end it, its questions and its stream. A second time does
    nothing.

    Raises SupersededError.
    """
    mine = _of(taking).filter(state__in=(*OPEN, CallState.CANCELLED, state))
    over = {"state": state, "request": "", "journal": "", "reply": ""}
    if not mine.update(**over, expires_at=timezone.now() + batch.kept):
        raise SupersededError
    questions.forget(taking.call)
    _write(stream, batch, last=True)


@transaction.atomic
def call_off(session: UUID, tenant: UUID, request_name: str) -> None:
    """Call off a request of the session, and tell the process that has it."""
    of_name = StreamedCall.objects.filter(session=session, request_id=request_name)
    for call in of_name.filter(state__in=OPEN).values_list("id", flat=True):
        if of_name.filter(id=call, state__in=OPEN).update(state=CallState.CANCELLED):
            questions.cancel(call)
    announce(CALLED_OFF, tenant=tenant, object_id=request_name)


@transaction.atomic
def release(taking: Taking, tenant: UUID, *, told: bool) -> None:
    """Let a call go that waits, for whoever takes it. `told`: it can go on, have somebody take it now.

    A second time does nothing, nor does it for one that is another's.
    """
    mine = _of(taking).filter(state=CallState.WAITING)
    if mine.update(owner=NOBODY) and told:
        announce(RELEASED, tenant=tenant, object_id=taking.call.hex)


def orphans(process: UUID, **which: UUID) -> tuple[UUID, ...]:
    """Calls that nobody has who is alive, seen from a process; `which` says of whom by columns."""
    left = StreamedCall.objects.exclude(request="").filter(**which)
    dead = Q(taken_at__lte=Now() - LEASE) & ~Q(owner__in=(process, *nodes.living()))
    ids = left.filter(Q(owner=NOBODY) | dead).order_by("taken_at").values_list("id", flat=True)
    return tuple(ids[:FOUND_AT_ONCE])


@transaction.atomic
def adopt(call: UUID, process: UUID) -> Adopted | None:
    """Take a call that nobody has; None if somebody does, or it is over."""
    row = StreamedCall.objects.select_for_update().filter(id=call).first()
    if row is None or call not in orphans(process, id=call):  # looked at once nobody can change it
        return None
    StreamedCall.objects.filter(id=call).update(
        owner=process, epoch=row.epoch + 1, taken_at=timezone.now()
    )
    return Adopted(
        Taking(call, process, row.epoch + 1),
        StreamRow(row.stream, row.tenant, row.session),
        CallRow(call, row.request_id, row.request),
        CallState(row.state),
        row.round,
        row.journal,
        row.reply,
        streams.last(row.stream),
    )


def _begin(taking: Taking, stream: StreamRow, call: CallRow, kept: timedelta) -> None:
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


def _append(taking: Taking, stream: StreamRow, batch: Batch) -> None:
    mine = _of(taking).exclude(request="")  # one that was called off elsewhere may not know it yet
    if not mine.update(expires_at=timezone.now() + batch.kept):
        raise SupersededError
    _write(stream, batch)


def _write(stream: StreamRow, batch: Batch, *, last: bool = False) -> None:
    streams.add(stream.id, stream.tenant, batch.events, batch.kept, last=last)
    if batch.told:
        streams.tell(streams.NEWS, [stream])


def _of(taking: Taking) -> QuerySet[StreamedCall]:
    return StreamedCall.objects.filter(id=taking.call, owner=taking.owner, epoch=taking.epoch)


@transaction.atomic
def prune() -> int:
    """Forget up to 500 calls whose time is over; return how many there were."""
    over = StreamedCall.objects.filter(expires_at__lt=Now()).order_by("expires_at")
    ids = list(over.values_list("id", flat=True)[: streams.PRUNED_AT_ONCE])
    StreamedCall.objects.filter(id__in=ids).delete()
    return len(ids)
