"""Calls that are answered on a stream: one process at a time has each, and nobody else writes for it.

Every change names the taking by which a process has the call, and does nothing for one that was
superseded. What is kept of a call is opaque here.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final, NamedTuple
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from mcphost.calls import questions, streams
from mcphost.calls.models import StreamedCall
from mcphost.calls.questions import Asked
from mcphost.calls.states import CallState
from mcphost.calls.streams import Event, StreamRow

OPEN: Final = (CallState.RUNNING, CallState.WAITING)


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
    questions.cancel(taking.call)
    _write(stream, batch, last=True)


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
