"""Calls on streams for tests: the conditions that an owner submits, and what the database has."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from django.utils import timezone

from mcphost.audit.models import Entry, Payload
from mcphost.audit.records import new_id
from mcphost.audit.writer.conditions import Condition
from mcphost.audit.writer.writer import Writer
from mcphost.calls import session_calls, sessions, streams
from mcphost.calls.models import OpenQuestion, Session, Stream, StreamedCall, StreamEvent
from mcphost.calls.ownership import Lease
from mcphost.calls.questions import RoundQuestions, StoredQuestion
from mcphost.calls.session_calls import BeginningCall, StoredCall, WaitingCall
from mcphost.calls.sessions import SessionRow
from mcphost.calls.states import CallState
from mcphost.calls.streams import Batch, Event, StreamRow
from mcphost.feed.models import Change, Counter
from tests.calls.claim_rows import TENANT, submit

HOUR = timedelta(hours=1)
TABLES = (StreamedCall, Stream, StreamEvent, OpenQuestion, Session, Change, Counter, Entry, Payload)
TIMES = frozenset({"taken_at", "created_at", "asked_at", "settled_at", "ended_at", "expires_at"})


def batch(*numbers: int, kept: timedelta = HOUR, notify: bool = False) -> Batch:
    """Events with these numbers."""
    return Batch([Event(each, f"message {each}") for each in numbers], kept, notify)


def session() -> UUID:
    """Begin a session."""
    row = SessionRow(
        new_id(), TENANT, "token:t1", "2025-11-25", {}, timezone.now() + HOUR, holder=uuid4().hex
    )
    sessions.begin(row, 100, lambda _: False)
    return row.id


class SealedAnswer(NamedTuple):
    """An answer to a question, as if it were sealed."""

    question: UUID
    text: str = "sealed answer"

    def sealed(self) -> str:
        return self.text


class MadeCall:
    """A call of an open session, with two questions to ask; nothing of it is written yet.

    The methods make conditions of its owner, or of another `lease`.
    """

    def __init__(self, of: UUID | None = None) -> None:
        self.lease = Lease(uuid4(), TENANT, uuid4(), 1)
        self.stream = StreamRow(uuid4(), TENANT, of or session())
        self.stored = StoredCall(self.lease.id, f"name {self.lease.id}", "sealed request")
        self.waiting = self.asking()

    @property
    def row(self) -> StreamedCall:
        return StreamedCall.objects.get(id=self.lease.id)

    @property
    def numbers(self) -> list[int]:
        """The numbers of its events."""
        return [each.number for each in streams.read(self.stream.id, 0).events]

    @property
    def questions(self) -> list[OpenQuestion]:
        """The rows of the questions, in the order in which they are asked."""
        rows = OpenQuestion.objects.filter(call=self.lease.id)
        return sorted(rows, key=lambda each: (each.round, each.key))

    def asking(self, number: int = 1, count: int = 2) -> WaitingCall:
        """New questions of the round `number`."""
        asked = [
            StoredQuestion(uuid4(), f"key{n}", "digest", "roots/list", f"sealed id {n}")
            for n in range(count)
        ]
        until, call = timezone.now() + HOUR, self.lease.id
        round_ = RoundQuestions(TENANT, self.stream.session, call, number, asked, until)
        return WaitingCall("sealed journal", round_)

    def begin(
        self,
        *numbers: int,
        waiting: WaitingCall | None = None,
        lease: Lease | None = None,
        notify: bool = False,
    ) -> Condition:
        begun = BeginningCall(self.stored, batch(*(numbers or (1,)), notify=notify), waiting)
        return session_calls.begin(lease or self.lease, self.stream, lambda: begun)

    def append(self, *numbers: int, lease: Lease | None = None, notify: bool = False) -> Condition:
        said = batch(*numbers, notify=notify)
        return session_calls.append(lease or self.lease, self.stream, lambda: said)

    def ask(
        self, *numbers: int, waiting: WaitingCall | None = None, lease: Lease | None = None
    ) -> Condition:
        asked = waiting or self.waiting
        return session_calls.ask(lease or self.lease, self.stream, asked, lambda: batch(*numbers))

    def finish(
        self,
        *numbers: int,
        state: CallState = CallState.FINISHED,
        lease: Lease | None = None,
        kept: timedelta = HOUR,
    ) -> Condition:
        said = batch(*numbers, kept=kept)
        return session_calls.finish(lease or self.lease, self.stream, state, lambda: said)

    def start(self, number: int = 2, lease: Lease | None = None) -> Condition:
        return session_calls.start(lease or self.lease, number)

    def answer(
        self,
        place: int = 0,
        text: str = "sealed answer",
        *,
        state: CallState = CallState.WAITING,
        number: int = 2,
        lease: Lease | None = None,
    ) -> Condition:
        """Answer the question at `place`; the round `number` is the next one."""
        given = SealedAnswer(self.waiting.round_questions.questions[place].id, text)
        return session_calls.answer(lease or self.lease, self.stream, given, number, state)

    def superseded(self) -> tuple[Lease, ...]:
        """Leases that the call does not belong to."""
        return self.lease._replace(epoch=2), self.lease._replace(owner=uuid4())

    def dies(self) -> None:
        """Make the lease of its owner, who sends no heartbeat, end."""
        StreamedCall.objects.filter(id=self.lease.id).update(taken_at=timezone.now() - HOUR)


def write(writer: Writer, *conditions: Condition) -> list[Any]:
    """Submit conditions without records in one batch; return whether each took hold, or its error."""
    return submit(writer, *((each, []) for each in conditions))


def begun(writer: Writer, *, waits: bool = False, of: UUID | None = None) -> MadeCall:
    """A call whose stream has begun with event 1; `waits`: it has asked its questions, too."""
    made = MadeCall(of)
    assert write(writer, made.begin(waiting=made.waiting if waits else None)) == [True]
    return made


def everything(*, times: bool = True) -> dict[str, Sequence[dict[str, Any]]]:
    """All rows that commits of calls may write; without `times`, except those."""
    return {
        table._meta.db_table: [
            {name: value for name, value in row.items() if times or name not in TIMES}
            for row in table._default_manager.order_by("pk").values()
        ]
        for table in TABLES
    }
