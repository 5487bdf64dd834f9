"""Calls that are answered on a stream. One process at a time owns a call, and only it writes to the
stream.

What the owner writes are conditions of audit records (`audit.writer.conditions`): a round's start or
end, its questions, answers and events are committed together with its records. Each condition may be
repeated, because only its owner uses it, one at a time.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final, NamedTuple, Protocol
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from mcphost.audit.writer.conditions import Condition, RowChange, Values
from mcphost.calls import questions, sessions, streams
from mcphost.calls.conditions_sql import Lock, change
from mcphost.calls.models import StreamedCall
from mcphost.calls.ownership import COLUMNS, NO_OWNER, Lease, free, is_mine, owned
from mcphost.calls.questions import RoundQuestions
from mcphost.calls.states import CALL, CallState, QuestionState, before
from mcphost.calls.streams import Batch, StreamRow
from mcphost.feed.services import announce

OPEN: Final = before(CALL, CallState.WAITING)
CANCELLED: Final = "cancelled"
"""The name of the change in the change log: a client cancelled its request."""
RELEASED: Final = "released"
"""The name of the change in the change log: a process released a call that can go on at once."""
FOUND_AT_ONCE: Final = 200


class StoredCall(NamedTuple):
    """A call that begins to stream. `request_name` is the id by which its client may cancel it;
    `request` is sealed."""

    id: UUID
    request_name: str
    request: str


class BeginningCall(NamedTuple):
    """What is written when a call begins to stream. `waiting` is what it waits for, if it does."""

    call: StoredCall
    batch: Batch
    waiting: "WaitingCall | None" = None


class GivenAnswer(Protocol):
    """An answer to a question. `sealed` returns it sealed, the same text each time. It is called in
    the writer's thread."""

    @property
    def question(self) -> UUID: ...

    def sealed(self) -> str: ...


class StoredRequest(NamedTuple):
    """The sealed request of a call that is not over."""

    tenant: UUID
    request: str


class TakenOver(NamedTuple):
    """A call taken over from another process. `last` is the number of its stream's last event."""

    owner: Lease
    stream: StreamRow
    call: StoredCall
    state: CallState
    round: int
    journal: str
    last: int


class WaitingCall(NamedTuple):
    """The questions that a call waits for, and the sealed journal for the next round."""

    journal: str
    round_questions: RoundQuestions


def begin(
    lease: Lease,
    stream: StreamRow,
    written: Callable[[], BeginningCall],
) -> Condition:
    """Condition: the call belongs to this lease, or there is none. Writes the call, its stream, first
    events, and, if it waits already, the questions of its first round.

    `written` is called in the writer's thread.
    """

    def values() -> Values:
        call, batch, waiting = written()
        row = {
            **_row(lease, batch.kept),
            "tenant": stream.tenant.hex,
            "session": stream.session.hex,
            "stream": stream.id.hex,
            "request_id": call.request_name,
            "request": call.request,
            "state": CallState.RUNNING if waiting is None else CallState.WAITING,
            "journal": "" if waiting is None else waiting.journal,
        }
        question_effects = {} if waiting is None else questions.ask_effects(waiting.round_questions)
        return Values(row, {**streams.begin_effects(stream, batch), **question_effects})

    return _condition(_BEGIN, lease, values)


def append(lease: Lease, stream: StreamRow, written: Callable[[], Batch]) -> Condition:
    """Condition: the call belongs to this lease and not over. Writes events.

    A cancelled call whose questions are being withdrawn is not over.
    """

    def values() -> Values:
        batch = written()
        return Values(_row(lease, batch.kept), streams.add_effects(stream, batch))

    return _condition(_APPEND, lease, values)


def ask(
    lease: Lease, stream: StreamRow, waiting: WaitingCall, written: Callable[[], Batch]
) -> Condition:
    """Condition: the call belongs to this lease, in the round that asks. Writes questions and events,
    and puts the call into `waiting`."""

    def values() -> Values:
        batch, round_questions = written(), waiting.round_questions
        row = {
            **_row(lease, batch.kept),
            "journal": waiting.journal,
            "round": round_questions.round,
        }
        return Values(
            row, {**streams.add_effects(stream, batch), **questions.ask_effects(round_questions)}
        )

    return _condition(_ASK, lease, values)


def finish(
    lease: Lease, stream: StreamRow, state: CallState, written: Callable[[], Batch]
) -> Condition:
    """Condition: the call belongs to this lease, and is not over in another way. Writes the last events,
    and ends the call, its questions and its stream."""

    def values() -> Values:
        batch = written()
        effects = {
            **streams.add_effects(stream, batch, last=True),
            **questions.forget_effects(lease.id),
        }
        return Values({**_row(lease, batch.kept), "state": state}, effects)

    return _condition(_FINISH, lease, values)


def start(lease: Lease, number: int) -> Condition:
    """Condition: the call belongs to this lease and waits after the previous round. Starts the round."""
    row = {**_row(lease), "state": CallState.RUNNING, "round": number}
    return _condition(_START, lease, lambda: Values(row))


def answer(
    lease: Lease, stream: StreamRow, given_answer: GivenAnswer, number: int, state: CallState
) -> Condition:
    """Condition: the question is open, and its call waits, after the round before `number`, and
    belongs to this lease. Stores the answer.

    With `state` running also starts the round `number`; with waiting, more answers are to come.
    """

    def values() -> Values:
        row = {
            **_row(lease),
            "question": given_answer.question.hex,
            "session": stream.session.hex,
            "answer": given_answer.sealed(),
            "state": state,
            "previous": number - 1,
            "round": number if state is CallState.RUNNING else number - 1,
        }
        return Values(row)

    return _condition(_ANSWER, lease, values)


@transaction.atomic
def cancel(session: UUID, tenant: UUID, request_name: str) -> None:
    """Cancel a request of the session, and notify its owner process."""
    of_name = StreamedCall.objects.filter(session=session, request_id=request_name)
    for call in of_name.filter(state__in=OPEN).values_list("id", flat=True):
        if of_name.filter(id=call, state__in=OPEN).update(state=CallState.CANCELLED):
            questions.cancel(call)
    announce(CANCELLED, tenant=tenant, object_id=request_name)


@transaction.atomic
def release(lease: Lease, *, notify: bool) -> None:
    """Release a waiting call for any process. `notify`: it can go on now, so notify the others.

    Does nothing for a call that is released already or owned by another process.
    """
    owned_call = _of(lease).filter(state=CallState.WAITING)
    if owned_call.update(owner=NO_OWNER) and notify:
        announce(RELEASED, tenant=lease.tenant, object_id=lease.id.hex)


@transaction.atomic
def announce_released(call: UUID, tenant: UUID) -> None:
    """Notify all processes of a released call again, because it may go on now."""
    announce(RELEASED, tenant=tenant, object_id=call.hex)


def orphans(process: UUID, limit: int = FOUND_AT_ONCE, /, **which: UUID) -> tuple[UUID, ...]:
    """Calls that are released or whose owner process is dead, as seen by `process`, which is alive.

    At most `limit`, the oldest first. `which` filters by column values.
    """
    unfinished_calls = StreamedCall.objects.exclude(request="").filter(**which)
    ids = unfinished_calls.filter(free(process)).order_by("taken_at").values_list("id", flat=True)
    return tuple(ids[:limit])


def request_of(call: UUID) -> StoredRequest | None:
    """The request of a call; None if the call is over."""
    rows = StreamedCall.objects.filter(id=call).exclude(request="")
    row = rows.values_list("tenant", "request").first()
    return None if row is None else StoredRequest(*row)


class Takeover:
    """Takes over a call that no living process owns. If it is called again because the result of a
    commit is unknown, it recognizes its own lease. A process has one per call at a time."""

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
            Lease(self._call, row.tenant, self._process, self._epoch),
            StreamRow(row.stream, row.tenant, row.session),
            StoredCall(self._call, row.request_id, row.request),
            CallState(row.state),
            row.round,
            row.journal,
            streams.last(row.stream),
        )


def is_open(call: UUID) -> bool:
    """Whether a call that has begun to stream runs or waits, in whichever process."""
    return StreamedCall.objects.filter(id=call, state__in=OPEN).exists()


def is_over(call: UUID) -> bool:
    """Whether a call that has begun to stream is over."""
    return StreamedCall.objects.filter(id=call).exclude(state__in=OPEN).exists()


def is_owned_by(lease: Lease) -> bool:
    """Whether the call still belongs to this lease, over or not."""
    return _of(lease).exists()


def journal(call: UUID) -> str:
    """The sealed journal of a call's last round; empty once the call is over."""
    row = StreamedCall.objects.filter(id=call).values_list("journal", flat=True).first()
    return row or ""


def _of(lease: Lease) -> QuerySet[StreamedCall]:
    return StreamedCall.objects.filter(id=lease.id, owner=lease.owner, epoch=lease.epoch)


@transaction.atomic
def prune() -> int:
    """Delete up to 500 expired calls; return how many."""
    over = StreamedCall.objects.filter(expires_at__lt=Now()).order_by("expires_at")
    ids = list(over.values_list("id", flat=True)[: streams.PRUNED_AT_ONCE])
    StreamedCall.objects.filter(id__in=ids).delete()
    return len(ids)


def _condition(row_change: RowChange, lease: Lease, values: Callable[[], Values]) -> Condition:
    return Condition(row_change, lease.id.hex, values)


def _row(lease: Lease, kept: timedelta = timedelta()) -> dict[str, Any]:
    # The call's id comes first: rows are sorted by their text.
    return {
        "call": lease.id.hex,
        "nonce": lease.id.hex,
        **owned(lease.owner, lease.epoch),
        "seconds": kept.total_seconds(),
    }


_CALL: Final = "calls_streamedcall"
_COLUMNS: Final = {
    "call": "uuid",
    "nonce": "text",
    **COLUMNS,
    "seconds": "double precision",
}
_IS_OWNED: Final = f"{_CALL}.id = r.call AND {is_mine(_CALL)}"
_NONCE: Final = f"RETURNING {{hex}}{_CALL}.id{{end}} AS nonce"


def _change(name: str, changes: str, condition: str, columns: Mapping[str, str]) -> RowChange:
    return change(f"call_{name}", {**_COLUMNS, **columns}, _update(changes, condition))


def _update(changes: str, condition: str) -> str:
    return f"UPDATE {_CALL} SET {changes} FROM {{r}} WHERE {_IS_OWNED} AND {condition} {_NONCE}"  # noqa: S608


def _leads_to(state: CallState) -> str:
    """SQL: the call may change to this state."""
    sources = ", ".join(f"'{source}'" for source in sorted(before(CALL, state)))
    return f"{_CALL}.state IN ({sources})"


def _goes_on(previous: str) -> str:
    """SQL: the call waits after the round `previous`, or is already in the state to be reached."""
    return (
        f"(({_CALL}.state = '{CallState.WAITING}' AND {_CALL}.round = {previous}) "
        f"OR ({_CALL}.state = r.state AND {_CALL}.round = r.round))"
    )


_INSERTED: Final = {
    "tenant": "uuid",
    "session": "uuid",
    "stream": "uuid",
    "request_id": "text",
    "request": "text",
    "state": "text",
    "journal": "text",
}
_BEGIN: Final = change(
    "call_begin",
    {**_COLUMNS, **_INSERTED},
    f"INSERT INTO {_CALL} (id, owner, epoch, {', '.join(_INSERTED)}, round, taken_at, "  # noqa: S608
    f"expires_at) SELECT r.call, r.owner, r.epoch, {', '.join(f'r.{name}' for name in _INSERTED)}, "
    "1, {now}, {later} FROM {r} WHERE true "
    "ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at "
    f"WHERE {_CALL}.owner = excluded.owner AND {_CALL}.epoch = excluded.epoch "
    # A call that waits although that was not confirmed may go on without its questions.
    f"AND {_CALL}.state IN (excluded.state, '{CallState.WAITING}') {_NONCE}",
)
_APPEND: Final = _change("append", "expires_at = {later}", f"{_CALL}.request <> ''", {})
_ASK: Final = _change(
    "ask",
    f"state = '{CallState.WAITING}', journal = r.journal, expires_at = {{later}}",
    f"{_leads_to(CallState.WAITING)} AND {_CALL}.round = r.round",
    {"journal": "text", "round": "bigint"},
)
_FINISH: Final = _change(
    "finish",
    "state = r.state, request = '', journal = '', expires_at = {later}",
    f"((r.state = '{CallState.FINISHED}' AND {_leads_to(CallState.FINISHED)}) "
    f"OR (r.state = '{CallState.CANCELLED}' AND {_leads_to(CallState.CANCELLED)}))",
    {"state": "text"},
)
_STATED: Final = {"state": "text", "round": "bigint"}
_START: Final = _change(
    "start", "state = r.state, round = r.round", _goes_on("r.round - 1"), _STATED
)
_ANSWER: Final = change(
    "call_answer",
    {
        **_COLUMNS,
        **_STATED,
        "question": "uuid",
        "session": "uuid",
        "answer": "text",
        "previous": "bigint",
    },
    f"UPDATE calls_openquestion SET state = '{QuestionState.ANSWERED}', answer = r.answer, "  # noqa: S608
    "settled_at = {now} FROM {r} WHERE {before} AND calls_openquestion.id = r.question "
    "AND calls_openquestion.call = r.call AND calls_openquestion.session = r.session "
    f"AND ((calls_openquestion.state = '{QuestionState.OPEN}' "
    "AND calls_openquestion.expires_at > {now}) "
    f"OR (calls_openquestion.state = '{QuestionState.ANSWERED}' "
    "AND calls_openquestion.answer = r.answer)) "
    f"AND {sessions.IS_OPEN} RETURNING {{hex}}calls_openquestion.call{{end}} AS nonce",
    _update("state = r.state, round = r.round", "{before}"),
    # The call's row is locked first, as everywhere: a takeover or cancellation now comes later.
    lock=Lock(_CALL, f"{_IS_OWNED} AND {_goes_on('r.previous')}"),
)
