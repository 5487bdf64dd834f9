"""The summaries follow the record: every entry counts once, whenever and wherever it is committed."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.models import Q
from django.utils import timezone

from mcphost.audit import call_list
from mcphost.audit.entries import view
from mcphost.audit.models import CallMark, CallSummary, Entry, Following, QuestionSummary, RollUp
from mcphost.audit.open_calls import losses
from mcphost.audit.records import Actor
from mcphost.audit.selectors import EntryFilter
from mcphost.audit.services import cancel_call
from mcphost.audit.summaries import batches, changed_calls, rollups, selectors
from mcphost.audit.summaries.batches import CallBatch
from mcphost.audit.summaries.counting import sums_of_call
from mcphost.audit.summaries.figures import CallSums, Period
from mcphost.audit.summaries.follower import LEASE, Follower
from mcphost.audit.summaries.projection import Projection, project, question_rows
from mcphost.audit.summaries.rollups import By, Resolution, cover
from mcphost.runtime.call import Client
from tests.audit.recorded_calls import (
    ACME,
    HALF_HOUR,
    MINUTE,
    OTHER,
    Story,
    asking,
    follow,
    forked,
    keep,
    plain,
    row,
)

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


def keep_new(made: Story, since: int) -> None:
    """Write the entries of a call from this one on."""
    Entry.objects.bulk_create(map(row, made.made[since:]))


def projected(row: CallSummary) -> Projection:
    """What a stored row says."""
    details = row.details or {"endings": {}, "answers": {}}
    shared = {name: getattr(row, name) for name in Projection._fields if hasattr(row, name)}
    return Projection(
        **{**shared, "endings": details["endings"], "answers": details["answers"], "took_ms": ()}
    )


def made_again(now: datetime) -> dict[UUID, Projection]:
    """All calls, projected in Python from all entries."""
    grouped: dict[UUID, list[Entry]] = {}
    for each in Entry.objects.filter(call__isnull=False).order_by("id"):
        assert each.call is not None
        grouped.setdefault(each.call, []).append(each)
    lost = losses()
    made = {call: project([view(e) for e in of], now, lost) for call, of in grouped.items()}
    return {call: one for call, one in made.items() if one is not None}


def columns_of(question: QuestionSummary) -> dict[str, Any]:
    return {field.name: getattr(question, field.name) for field in question._meta.fields}


def check(now: datetime | None = None) -> None:
    """The rows are those that follow from the entries, and the roll-ups are their sums."""
    now = now or timezone.now()
    rows = {each.call: each for each in CallSummary.objects.all()}
    expected = made_again(now)
    plain = {call: one._replace(took_ms=(), questions=()) for call, one in expected.items()}
    assert {call: projected(each) for call, each in rows.items()} == plain
    questions = [
        each for one in expected.values() for each in question_rows(one.questions, one.last)
    ]
    assert {each.id: columns_of(each) for each in QuestionSummary.objects.all()} == {
        each.id: columns_of(each) for each in questions
    }
    marks = Counter(CallMark.objects.values_list("call", "mark"))
    assert set(marks.values()) <= {1}
    assert {(c, m) for c, m in marks if m in ("asked", "refused")} == {
        (call, mark)
        for call, one in rows.items()
        for mark, count in (("asked", one.asked), ("refused", one.refused))
        if count
    }
    lasts = dict(CallSummary.objects.values_list("call", "last"))
    assert all(lasts[c] == last for c, last in CallMark.objects.values_list("call", "last"))
    for longest, hours in ((Resolution.MINUTE, 20), (Resolution.HOUR, 700), (Resolution.DAY, 9000)):
        begins = int((now - hours * HOUR).timestamp()) // longest.seconds * longest.seconds
        buckets = cover(begins, int(now.timestamp()) + 86_400, longest, now)
        counted = rollups.of_buckets(buckets)
        in_runs = RollUp.objects.filter(rollups.of_runs(buckets))
        assert set(in_runs) == set(RollUp.objects.filter(counted))
        calls = CallSummary.objects.filter(last__gte=rollups.id_at(begins))
        by_tenant: dict[UUID, CallSums] = {}
        whole = CallSums()
        for each in calls:
            assert each.tenant is not None
            sums = sums_of_call(each)
            by_tenant.setdefault(each.tenant, CallSums()).add(sums)
            whole.add(sums)
        for tenant, wanted in by_tenant.items():
            for by in (By.ALL, By.TARGET, By.CLIENT, By.CALLER):
                _same(_sums(by, counted)[tenant], wanted)
        if calls:
            _same(_sums(By.ALL, counted)[rollups.PLATFORM], whole)


def _sums(by: By, counted: Q) -> dict[UUID, CallSums]:
    found: dict[UUID, CallSums] = {}
    rows = RollUp.objects.filter(counted, dimension__in=by.whole)
    for tenant, *values in rows.values_list("tenant", *rollups.SUMMED):
        found.setdefault(tenant, CallSums()).add(rollups.sums_of(values))
    return found


def _same(found: CallSums, wanted: CallSums) -> None:
    for name in ("calls", "errors", "input_requests", "latency", "answering", "endings"):
        assert getattr(found, name) == getattr(wanted, name), name


@pytest.mark.django_db(transaction=True)
def test_entries_older_than_the_summaries_are_read_backwards_in_portions(monkeypatch):
    monkeypatch.setattr(changed_calls, "PORTION", 3)
    monkeypatch.setattr(batches, "AT_ONCE", 2)
    keep(
        *(plain() for _ in range(5)),
        asking(),
        forked(Story.of(OTHER, at=timezone.now() - HALF_HOUR)),
    )
    one = Follower()
    assert one.step().more
    assert 0 < CallSummary.objects.count() < 7
    assert not selectors.is_complete()
    follow(one)
    assert selectors.is_complete()
    assert selectors.newest() == 0, "they are no news"
    check()


def test_an_entry_that_is_committed_late_is_not_lost() -> None:
    """Its id is smaller than those that were seen: the database was away, or a clock differs."""
    early = plain("early")
    keep(*(plain() for _ in range(3)))
    follow()
    later = [plain("later") for _ in range(3)]
    keep(*later)
    follow()
    keep(early)
    assert follow() == 1
    check()


def test_a_call_that_continues_hours_later_counts_once_with_its_latest_state() -> None:
    made = Story.of(ACME, "asking", at=timezone.now() - timedelta(hours=20))
    made.expires = timedelta(days=2)
    keep(made.play("start; ask a b"))
    follow()
    check()
    written = len(made.made)
    made.back(timedelta(hours=19)).play("answer a; answer b decline; start; end")
    keep_new(made, written)
    assert follow() == 1
    check()
    found = selectors.totals(frozenset({ACME}), Period.DAY, timezone.now())
    assert (found.calls, found.input_requests, found.endings) == (1, 2, {"accept": 1, "decline": 1})


def test_reading_the_same_entries_again_changes_no_summary() -> None:
    keep(plain(), asking(), forked(Story.of(OTHER, at=timezone.now() - HALF_HOUR)))
    follow()
    before = selectors.newest()
    calls = [call.hex for call in CallSummary.objects.values_list("call", flat=True)]
    assert batches.write(CallBatch(calls), timezone.now(), losses()) == 0
    batches.write(CallBatch(calls, again=True), timezone.now(), losses())
    changes = selectors.changed(None, before, 100)
    assert changes.calls == frozenset(map(UUID, calls))
    check()


def test_the_next_step_marks_calls_past_their_expiry_as_expired(monkeypatch: pytest.MonkeyPatch):
    keep(asking())
    follow()
    assert CallSummary.objects.get().state == "open"
    later = timezone.now() + 2 * HALF_HOUR
    monkeypatch.setattr(timezone, "now", lambda: later)
    assert follow() == 1
    row = CallSummary.objects.get()
    assert (row.state, row.expires_at) == ("expired", None)
    check(later)


@pytest.mark.django_db(transaction=True)
def test_any_process_continues_a_step_that_was_interrupted(monkeypatch: pytest.MonkeyPatch):
    keep(plain())
    follow()
    monkeypatch.setattr("mcphost.audit.summaries.follower.AT_ONCE", 2)
    keep(*(plain() for _ in range(5)))
    written = []

    class DeadError(Exception):
        pass

    def die(seconds: float) -> None:
        written.append(seconds)
        if len(written) == 2:
            raise DeadError

    with pytest.raises(DeadError):
        Follower().step(die)
    assert CallSummary.objects.count() == 5
    Following.objects.update(leased_until=timezone.now() - MINUTE)
    follow()
    assert CallSummary.objects.count() == 6
    check()


def test_one_process_holds_the_lease_and_another_takes_over_when_it_ends() -> None:
    keep(plain())
    one, other = Follower(), Follower()
    assert one.step().leads
    assert not other.step().leads
    keep(plain())
    assert other.step().written == 0
    assert one.step().written == 1
    Following.objects.update(leased_until=timezone.now() - LEASE)
    keep(plain())
    assert other.step().written == 1
    assert not one.step().leads
    other.release()
    assert one.step().leads
    check()


def _long_name(seed: int) -> str:
    chosen = random.Random(seed)
    return "".join(chr(chosen.randrange(0x10000, 0x10FFFF)) for _ in range(512))


def test_targets_and_clients_too_long_for_an_index_are_counted_as_other() -> None:
    """PostgreSQL refuses rows of an index with more than 2,704 bytes, and all that follows stops."""
    for seed in (1, 2):
        client = Client(_long_name(3))
        keep(
            Story.of(ACME, _long_name(seed), client=client, at=timezone.now()).play("start; ask a")
        )
    follow()
    for by in selectors.Dimension.TARGET, selectors.Dimension.CLIENT:
        top = selectors.top(None, by, Period.DAY, timezone.now())
        assert [(each.name, each.is_other, each.calls) for each in top] == [("", True, 2)]
    check()


@pytest.mark.django_db(transaction=True)
def test_a_table_that_was_rewritten_or_restored_is_read_again() -> None:
    keep(plain(), plain())
    follow()
    Following.objects.update(position=1 << 60, checked=1 << 60)
    keep(plain())
    follow()
    check()


def _history(rng: random.Random, tenant: UUID) -> Story:
    made = Story.of(tenant, rng.choice("xyz"), at=timezone.now() - rng.random() * 60 * MINUTE)
    for _ in range(rng.randint(1, 5)):
        _happen(rng, made)
    return made


def _happen(rng: random.Random, made: Story) -> None:
    keys = rng.sample("abc", rng.randint(1, 2))
    steps: list[Callable[[], object]] = [
        made.start,
        lambda: made.end(rng.choice(["complete", "tool_error", "cancelled", "yielded"]), "why"),
        lambda: made.ask(*keys),
        lambda: made.ask(*keys, invalid={keys[0]: "no number"}),
        lambda: made.back().answer(
            keys[0], rng.choice(["accept", "decline", "cancel", "received"])
        ),
        lambda: made.answer("z", unasked=True),
        lambda: made.refuse("it expired"),
        made.cancel_task,
        made.repeat,
        made.again,
        made.back,
    ]
    rng.choice(steps)()


@pytest.mark.parametrize("seed", range(6))
def test_rows_and_sums_are_the_same_for_any_order_of_commits(seed: int) -> None:
    rng = random.Random(seed)
    entries = [
        row(each) for _ in range(40) for each in _history(rng, rng.choice((ACME, OTHER))).made
    ]
    rng.shuffle(entries)
    while entries:
        some = rng.randint(1, 40)
        Entry.objects.bulk_create(entries[:some])
        entries = entries[some:]
        Follower().step() if rng.random() < 0.5 else follow()
        Following.objects.update(owner=None)
    follow()
    check()
    now = timezone.now()
    listed = {each.entry.call: each for each in _all_listed(now)}
    wanted = made_again(now)
    assert {call: each.state for call, each in listed.items()} == {
        call: one.state for call, one in wanted.items()
    }
    for call, one in listed.items():
        assert (one.entry.id, one.refused) == (wanted[call].last, wanted[call].refused)  # type: ignore[index]


def _all_listed(now: datetime) -> list[call_list.ListedCall]:
    found: list[call_list.ListedCall] = []
    after = None
    while True:
        page = call_list.calls(EntryFilter(None), now, after=after, limit=7)
        found += page.calls
        after = page.after
        if after is None:
            return found


@contextmanager
def _transaction(end: str) -> Iterator[Any]:
    """A cursor of another connection, in a transaction that ends so."""
    other = connections.create_connection(DEFAULT_DB_ALIAS)
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN")
            yield cursor
            cursor.execute(end)
    finally:
        other.close()


@pytest.mark.postgresql  # SQLite has one writing transaction at a time
@pytest.mark.django_db(transaction=True)
def test_an_entry_is_summarized_when_its_transaction_commits_after_later_ones() -> None:
    follow()
    fields = Entry._meta.concrete_fields
    places = ", ".join(["%s"] * len(fields))
    names = ", ".join(f'"{each.column}"' for each in fields)
    with _transaction("COMMIT") as cursor:
        for each in map(row, plain("slow").made):
            values = [
                field.get_db_prep_save(getattr(each, field.attname), cursor.db) for field in fields
            ]
            cursor.execute(f"INSERT INTO audit_entry ({names}) VALUES ({places})", values)
        keep(plain("fast"))
        assert follow() == 1
        assert follow() == 0
    assert follow() == 1
    check()


@pytest.mark.postgresql  # SQLite has one writing transaction at a time
@pytest.mark.django_db(transaction=True)
def test_a_long_transaction_causes_no_entry_to_be_lost_or_read_twice() -> None:
    cancelled = asking()
    keep(cancelled)
    follow()
    with _transaction("ROLLBACK") as cursor:
        cursor.execute("SELECT pg_current_xact_id()")
        keep(*(plain() for _ in range(3)))
        assert follow() == 3
        assert changed_calls.find_calls(Following.objects.get()).calls == []
        with transaction.atomic(), transaction.atomic():  # recorded in a subtransaction
            cancel_call(cancelled.call.id, ACME, "why", Actor.person(7, "sam"))
        assert follow() == 1
    check()
