"""What the owner of a call commits together with records: once, whole, and only as the owner."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import transaction

from mcphost.audit.writer.conditions import Condition
from mcphost.audit.writer.writer import RecordRefusedError, Writer
from mcphost.calls.ownership import Lease
from mcphost.calls.states import CallState, QuestionState
from mcphost.feed.models import Change, Counter
from mcphost.feed.services import announce
from tests.audit.ciphers import GateCipher
from tests.audit.databases import record, stored
from tests.audit.writer.test_writer import block, in_background
from tests.calls.claim_rows import submit, with_payload
from tests.calls.conftest import Start
from tests.calls.lost_connections import after_the_commit, before_the_commit, lose_connections
from tests.calls.streaming import MadeCall, everything, write

pytestmark = pytest.mark.django_db(transaction=True)

RUNNING, WAITING = CallState.RUNNING, CallState.WAITING
FINISHED, CANCELLED = CallState.FINISHED, CallState.CANCELLED
OPEN, ANSWERED, GIVEN_UP = QuestionState.OPEN, QuestionState.ANSWERED, QuestionState.CANCELLED

State = tuple[CallState, int, list[int], list[QuestionState]]
"""A call's state and round, the numbers of its events, and the states of its questions."""


@dataclass(frozen=True)
class Kind:
    """One kind of commit. `before` is what must be written first, `after` is the call's state then."""

    before: Callable[[MadeCall], Condition | None]
    make: Callable[[MadeCall, Lease], Condition]
    after: State


Make = Callable[[MadeCall, Lease], Condition]


def nothing_before(make: Make, after: State) -> Kind:
    return Kind(lambda made: None, make, after)


def runs_before(make: Make, after: State) -> Kind:
    return Kind(lambda made: made.begin(), make, after)


def waits_before(make: Make, after: State) -> Kind:
    return Kind(lambda made: made.begin(waiting=made.waiting), make, after)


KINDS = {
    "begin": nothing_before(
        lambda made, owner: made.begin(1, 2, lease=owner), (RUNNING, 1, [1, 2], [])
    ),
    "begin with questions": nothing_before(
        lambda made, owner: made.begin(1, 2, waiting=made.waiting, lease=owner),
        (WAITING, 1, [1, 2], [OPEN, OPEN]),
    ),
    "append": runs_before(
        lambda made, owner: made.append(2, 3, lease=owner), (RUNNING, 1, [1, 2, 3], [])
    ),
    "append to a waiting call": waits_before(
        lambda made, owner: made.append(2, lease=owner), (WAITING, 1, [1, 2], [OPEN, OPEN])
    ),
    "ask": runs_before(
        lambda made, owner: made.ask(2, 3, lease=owner), (WAITING, 1, [1, 2, 3], [OPEN, OPEN])
    ),
    "start": waits_before(
        lambda made, owner: made.start(2, owner), (RUNNING, 2, [1], [OPEN, OPEN])
    ),
    "answer and start": waits_before(
        lambda made, owner: made.answer(state=RUNNING, lease=owner),
        (RUNNING, 2, [1], [ANSWERED, OPEN]),
    ),
    "answer": waits_before(
        lambda made, owner: made.answer(lease=owner), (WAITING, 1, [1], [ANSWERED, OPEN])
    ),
    "finish": runs_before(
        lambda made, owner: made.finish(2, lease=owner), (FINISHED, 1, [1, 2], [])
    ),
    "finish a waiting call": waits_before(
        lambda made, owner: made.finish(2, state=CANCELLED, lease=owner),
        (CANCELLED, 1, [1, 2], [GIVEN_UP, GIVEN_UP]),
    ),
}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


def state_of(made: MadeCall) -> State:
    row = made.row
    states = [QuestionState(each.state) for each in made.questions]
    return CallState(row.state), row.round, made.numbers, states


def ready(kind: Kind, writer: Writer, of: UUID | None = None, *, begun: bool = False) -> MadeCall:
    """A call to which `kind` can be committed; `begun`: one that there is, even if `kind` begins it."""
    made = MadeCall(of)
    before = kind.before(made)
    if before is None and begun:
        before = kind.make(made, made.lease)
    if before is not None:
        assert write(writer, before) == [True]
    return made


# --- one commit ---


@every_kind
def test_a_repeated_change_of_a_call_is_committed_once_with_its_records(
    start: Start, kind: Kind
) -> None:
    made = ready(kind, writer := start())
    records = [with_payload(), record()]
    assert submit(writer, (kind.make(made, made.lease), records)) == [True]
    assert state_of(made) == kind.after
    assert stored() == {each.id for each in records}
    assert made.row.epoch == 1
    before = everything(times=False)
    for _ in range(2):
        assert submit(writer, (kind.make(made, made.lease), records)) == [True]
        after = everything(times=False)
        assert {**after, "audit_payload": None} == {**before, "audit_payload": None}
        assert len(after["audit_payload"]) == 1


@every_kind
@pytest.mark.parametrize(
    "losses",
    [(before_the_commit,), (after_the_commit, before_the_commit, after_the_commit)],
    ids=["before", "after-before-after"],
)
def test_a_call_changes_once_when_the_connection_is_lost_during_the_commit(
    start, monkeypatch, kind, losses
):
    made = ready(kind, start())
    lose_connections(monkeypatch, *losses)
    records = [with_payload(), record()]
    assert submit(start(), (kind.make(made, made.lease), records)) == [True]
    assert state_of(made) == kind.after
    assert stored() == {each.id for each in records}


@every_kind
def test_a_superseded_owner_or_a_bad_record_writes_nothing(start: Start, kind: Kind):
    made = ready(kind, writer := start())
    before = everything()
    (verdict,) = submit(
        writer, (kind.make(made, made.lease), [record(), record(duration_us=2**70)])
    )
    assert isinstance(verdict, RecordRefusedError)
    assert everything() == before
    made = ready(kind, writer, begun=True)
    before = everything()
    for other in made.superseded():
        assert submit(writer, (kind.make(made, other), [with_payload()])) == [False]
        assert everything() == before


@every_kind
def test_an_owner_superseded_before_the_retry_is_refused(start, monkeypatch, kind):
    made = ready(kind, start(), begun=True)

    def taken_over_meanwhile(*_: Any) -> None:
        type(made.row).objects.update(epoch=2)

    lose_connections(monkeypatch, taken_over_meanwhile)
    assert submit(start(), (kind.make(made, made.lease), [with_payload()])) == [False]
    assert stored() == set()


@every_kind
def test_no_change_is_written_to_an_ended_call(start: Start, kind: Kind) -> None:
    writer = start()
    for end in (FINISHED, CANCELLED):
        made = ready(kind, writer, begun=True)
        assert write(writer, made.finish(2, state=end)) == [True]
        before = everything()
        is_end = kind.after[0] in (FINISHED, CANCELLED)
        late = made.append(3) if is_end else kind.make(made, made.lease)
        assert submit(writer, (late, [with_payload()])) == [False]
        assert everything() == before


# --- many in one batch ---


@every_kind
def test_each_call_of_a_batch_gets_its_own_outcome(
    start: Start, gate: GateCipher, kind: Kind
) -> None:
    """One of them has a message that cannot be written: it costs its own call only."""
    writer = start()
    every = [ready(kind, writer, begun=True) for _ in range(20)]
    owners = [one.lease if n % 2 else one.superseded()[n % 4 // 2] for n, one in enumerate(every)]
    records = [record() for _ in every]
    bad = ready(KINDS["append"], writer)
    bad.stream = bad.stream._replace(id="no id")  # type: ignore[arg-type]
    held = block(writer, gate)
    jobs = [
        (kind.make(one, owner), [own])
        for one, owner, own in zip(every, owners, records, strict=True)
    ]
    jobs.insert(13, (bad.append(2), [record()]))
    before = stored()
    gate.open_gate()
    verdicts = submit(writer, *jobs)
    assert held() is None
    assert isinstance(verdicts.pop(13), RecordRefusedError)
    assert verdicts == [False, True] * 10
    assert {each.id for each in records[1::2]} <= stored() - before
    assert stored().isdisjoint(each.id for each in records[::2])
    assert [state_of(one) for one in every[1::2]] == [kind.after] * 10


# --- the change log ---


def test_announcements_of_concurrent_processes_get_consecutive_numbers(start: Start) -> None:
    writers = [start() for _ in range(3)]
    every = [[ready(KINDS["append"], writer) for _ in range(5)] for writer in writers]
    together = threading.Barrier(4)

    def telling(writer: Writer, mine: list[MadeCall]) -> list[Any]:
        together.wait(10)
        return [verdict for one in mine for verdict in write(writer, one.append(2, notify=True))]

    results = [
        in_background(lambda writer=writer, mine=mine: telling(writer, mine))  # type: ignore[misc]
        for writer, mine in zip(writers, every, strict=True)
    ]
    together.wait(10)
    for _ in range(5):
        with transaction.atomic():
            announce("other", object_id=uuid4().hex)
    assert [each() for each in results] == [[True] * 5] * 3
    assert sorted(Change.objects.values_list("seq", flat=True)) == list(range(1, 21))
    assert Counter.objects.get().value == 20
