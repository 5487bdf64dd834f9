"""Conditions of submissions: their steps, effects and records, with tables of this test."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from django.db import OperationalError, connection

from mcphost.audit.records import Record
from mcphost.audit.writer import conditions
from mcphost.audit.writer.conditions import (
    BoundCondition,
    Condition,
    Effect,
    RowChange,
    Steps,
    Values,
    by_change,
    by_effect,
)
from mcphost.audit.writer.rows import RecordRefusedError
from mcphost.audit.writer.writer import RecordLostError
from tests.audit.ciphers import GateCipher
from tests.audit.conftest import Start
from tests.audit.databases import locked, record, stored
from tests.audit.submitting import submit_and_wait
from tests.audit.writer.test_writer import block, in_background, with_payload
from tests.calls.claim_rows import submit
from tests.calls.lost_connections import Loss, after_the_commit, before_the_commit, lose_connections

pytestmark = pytest.mark.django_db(transaction=True)

TABLES = {
    "probe": "id text PRIMARY KEY, state text NOT NULL",
    "probe_lock": "id text PRIMARY KEY, state text NOT NULL",
    "probe_note": "number integer PRIMARY KEY, of_row text NOT NULL, said text NOT NULL",
    "probe_sum": "id integer PRIMARY KEY, notes integer NOT NULL",
}
_VALUES = ("nonce", "id", "state", "was")
_NOTES = ("nonce", "number", "said")


def _steps(columns: Sequence[str], *templates: str, name: str) -> Steps:
    """`{r}` are the rows; `{before}` and `{held}` choose those that PostgreSQL must leave out."""
    extracted = ", ".join(f"json_extract(value, '$.{column}') AS {column}" for column in columns)
    typed = ", ".join(f"{c} {'integer' if c == 'number' else 'text'}" for c in columns)
    sqlite = {"r": f"(SELECT {extracted} FROM json_each(?)) AS r", "before": "true", "held": "true"}
    postgres = {
        "r": f"json_to_recordset(%s::json) AS r({typed})",
        "held": "r.nonce IN (SELECT nonce FROM held)",
    }
    return {
        conditions.SQLITE: tuple(each.format_map(sqlite) for each in templates),
        conditions.POSTGRESQL: tuple(
            each.format_map(
                {**postgres, "before": f"r.nonce IN (SELECT nonce FROM {name}{number - 1})"}
            )
            for number, each in enumerate(templates)
        ),
    }


def _change(name: str, *templates: str, made: str = "", reads: bool = False) -> RowChange:
    known = {vendor: steps[0] for vendor, steps in _steps(_VALUES, made, name=name).items()}
    make = _steps(_VALUES, *templates, name=name)
    return RowChange(name, make, known if made else None, reads)


_ADD = _change(
    "probe_add",
    "INSERT INTO probe (id, state) SELECT r.nonce, r.state FROM {r} WHERE true "
    "ON CONFLICT DO NOTHING RETURNING id AS nonce",
    made="SELECT r.nonce FROM probe, {r} WHERE probe.id = r.nonce AND probe.state = r.state",
)
"""May not be repeated."""
_SET = _change(
    "probe_set",
    "UPDATE probe SET state = r.state FROM {r} WHERE probe.id = r.nonce "
    "AND probe.state IN (r.was, r.state) RETURNING probe.id AS nonce",
)
"""May be repeated."""
_UNLOCK = _change(
    "probe_unlock",
    "SELECT r.nonce FROM probe_lock, {r} WHERE probe_lock.id = r.nonce AND probe_lock.state = 'open'",
    "UPDATE probe SET state = r.state FROM {r} WHERE probe.id = r.nonce AND {before} "
    "AND probe.state = r.was RETURNING probe.id AS nonce",
    "UPDATE probe_lock SET state = 'used' FROM {r} WHERE probe_lock.id = r.nonce AND {before} "
    "RETURNING probe_lock.id AS nonce",
)
"""Has three steps."""
_LOOK = _change(
    "probe_look",
    "SELECT r.nonce FROM probe, {r} WHERE probe.id = r.nonce AND probe.state = r.was",
    reads=True,
)
_NOTING = (
    "INSERT INTO probe_note (number, of_row, said) "
    "SELECT r.number, r.nonce, r.said FROM {r} WHERE {held} ON CONFLICT DO NOTHING"
)
_SUMMING = (
    "INSERT INTO probe_sum (id, notes) SELECT 1, count(*) FROM {r} WHERE {held} "
    "HAVING count(*) > 0 ON CONFLICT (id) DO UPDATE SET notes = probe_sum.notes + excluded.notes"
)


def note(committed: Callable[[], None] | None = None) -> Effect:
    """An effect that writes notes."""
    return Effect("probe_notes", _steps(_NOTES, _NOTING, name="probe_notes"), committed)


_NOTE = note()
_SUM = Effect("probe_summing", _steps(_NOTES, _SUMMING, name="probe_summing"))

Rows = Sequence[Mapping[str, Any]]
Jobs = Sequence[tuple[Condition, Sequence[Record]]]


def condition(
    change: RowChange,
    nonce: str,
    state: str = "new",
    was: str = "",
    effects: Mapping[Effect, Rows] | None = None,
) -> Condition:
    values = Values({"nonce": nonce, "state": state, "was": was}, effects or {})
    return Condition(change, nonce, lambda: values)


def noting(*numbers: int) -> Rows:
    return [{"number": number, "said": f"note {number}"} for number in numbers]


def rows(table: str, columns: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {columns} FROM {table} ORDER BY 1")
        return list(cursor.fetchall())


def states(table: str = "probe") -> dict[str, str]:
    return dict(rows(table, "id, state"))


def notes() -> dict[int, str]:
    return dict(rows("probe_note", "number, of_row"))


def total() -> int:
    found: int = sum(notes for (notes,) in rows("probe_sum", "notes"))
    return found


def put(table: str, **values: str) -> None:
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {table} (id, state) VALUES (%s, %s)", list(values.items()))


@pytest.fixture(autouse=True)
def _tables(db: None) -> Iterator[None]:
    with connection.cursor() as cursor:
        for name, columns in TABLES.items():
            cursor.execute(f"CREATE TABLE {name} ({columns})")
    yield
    with connection.cursor() as cursor:
        for name in TABLES:
            cursor.execute(f"DROP TABLE {name}")


# --- what is committed together ---


def test_a_change_its_effects_and_its_records_are_committed_together(start: Start) -> None:
    records, writer = [record(), with_payload()], start()
    one = condition(_ADD, "a", effects={_NOTE: noting(1, 2), _SUM: noting(1, 2)})
    assert submit(writer, (one, records)) == [True]
    assert states() == {"a": "new"}
    assert notes() == {1: "a", 2: "a"}
    assert total() == 2
    assert stored() == {each.id for each in records}
    assert submit(writer, (condition(_ADD, "b"), [])) == [True], "neither records nor effects"
    assert submit(writer, (condition(_ADD, "b", effects={_NOTE: []}), [])) == [False]


def test_rejected_changes_write_no_effect_and_no_record(start: Start) -> None:
    put("probe", a="old")
    called = threading.Event()
    effects = {note(called.set): noting(1), _SUM: noting(1)}
    one = condition(_ADD, "a", effects=effects)
    assert submit(start(), (one, [record(), with_payload()])) == [False]
    assert (states(), notes(), total(), stored()) == ({"a": "old"}, {}, 0, set())
    assert not called.is_set()


def test_effects_in_a_batch_apply_to_the_conditions_that_succeeded_only(start: Start) -> None:
    put("probe", **{f"n{number}": "old" for number in range(0, 40, 2)})
    called: list[str] = []
    effect = note(lambda: called.append(threading.current_thread().name))
    jobs = [
        (
            condition(
                _ADD, f"n{n}", effects={effect: noting(n, 100 + n), _SUM: noting(*[n] * (n % 3))}
            ),
            [record()],
        )
        for n in range(40)
    ]
    assert submit(start(), *jobs) == [False, True] * 20
    assert notes() == {n: f"n{n % 100}" for n in range(140) if n % 100 < 40 and n % 2}
    assert total() == sum(n % 3 for n in range(1, 40, 2))
    assert stored() == {own.id for _, (own,) in jobs[1::2]}
    assert called == ["mcphost-writer"], "once for the batch"


def test_a_batch_commits_conditions_and_unconditional_records_together(
    start: Start, gate: GateCipher
) -> None:
    put("probe", b="old")
    writer = start()
    held = block(writer, gate)
    free, own, lost = record(), record(), record()
    plain = in_background(lambda: submit_and_wait(writer, [free]))
    gate.open_gate()
    results = submit(writer, (condition(_ADD, "a"), [own]), (condition(_ADD, "b"), [lost]))
    assert (held(), plain()) == (None, None)
    assert results == [True, False]
    assert stored() >= {free.id, own.id}
    assert lost.id not in stored()


# --- steps ---


def test_a_later_step_changes_only_rows_that_the_previous_step_returned(start: Start) -> None:
    put("probe", free="old", closed="old", other="other", bare="old")
    put("probe_lock", free="open", closed="shut", other="open")
    writer, own = start(), record()
    names = ("bare", "closed", "free", "other", "unknown")
    jobs = [
        (condition(_UNLOCK, name, "new", "old"), [own if name == "free" else record()])
        for name in names
    ]
    # In the first batch no row passes the first step.
    assert submit(writer, *jobs[:2]) == [False, False]
    assert stored() == set()
    assert submit(writer, *jobs) == [False, False, True, False, False]
    assert states() == {"free": "new", "closed": "old", "other": "other", "bare": "old"}
    assert states("probe_lock") == {"free": "used", "closed": "shut", "other": "open"}
    assert stored() == {own.id}


# --- lost connections ---

LOSSES: Sequence[tuple[Loss, ...]] = [
    (before_the_commit,),
    (after_the_commit,),
    (before_the_commit, after_the_commit, before_the_commit),
    (after_the_commit, after_the_commit),
]


@pytest.mark.parametrize("losses", LOSSES)
def test_each_condition_gets_its_own_outcome_after_a_lost_connection(start, monkeypatch, losses):
    put("probe", taken="old", set="old", unset="other")
    lose_connections(monkeypatch, *losses)
    called: list[int] = []
    effect = note(lambda: called.append(1))
    jobs = [
        (condition(change, nonce, "new", "old", {effect: noting(number)}), [record()])
        for number, (change, nonce) in enumerate(
            [(_ADD, "added"), (_ADD, "taken"), (_SET, "set"), (_SET, "unset"), (_LOOK, "taken2")]
        )
    ]
    assert submit(start(), *jobs) == [True, False, True, False, False]
    assert states() == {"added": "new", "taken": "old", "set": "new", "unset": "other"}
    assert notes() == {0: "added", 2: "set"}
    assert stored() == {own.id for _, (own,) in (jobs[0], jobs[2])}
    assert called == [1], "what follows from a commit is done once"


def test_a_commit_that_never_succeeds_runs_no_effect_and_no_callback(
    start, failures, clock, monkeypatch
):
    called = threading.Event()

    def never(*_: Any) -> None:
        raise OperationalError("gone")

    lose_connections(monkeypatch, *[never] * 1000)
    writer = start(give_up=10)
    one = condition(_ADD, "a", effects={note(called.set): noting(1)})
    waiting = in_background(lambda: submit(writer, (one, [record()])))
    failures.wait()
    clock.now += 10
    (result,) = waiting()
    assert isinstance(result, RecordLostError)
    assert not called.is_set()
    assert (states(), notes(), stored()) == ({}, {}, set())


# --- bad rows ---


@pytest.mark.parametrize("place", [0, 29])
def test_an_effect_refused_by_the_database_fails_its_own_condition_only(start: Start, place: int):
    jobs = [(condition(_ADD, f"n{n}", effects={_NOTE: noting(n)}), [record()]) for n in range(30)]
    bad = [{"number": place, "said": None}]
    jobs[place] = (condition(_ADD, f"n{place}", effects={_NOTE: bad}), [record()])
    results = submit(start(), *jobs)
    assert isinstance(results.pop(place), RecordRefusedError)
    assert results == [True] * 29
    assert len(states()) == len(notes()) == len(stored()) == 29
    assert f"n{place}" not in states()


def test_a_condition_whose_values_raise_fails_alone(start, caplog):
    def broken() -> Values:
        raise ValueError("canary")

    bad = Condition(_ADD, "b", broken)
    refused, landed = submit(start(), (bad, [record()]), (condition(_ADD, "a"), [record()]))
    assert isinstance(refused, RecordRefusedError)
    assert landed is True
    assert "canary" not in f"{caplog.text} {refused}"
    assert states() == {"a": "new"}


# --- conditions that only read ---


def test_a_batch_that_only_reads_does_not_wait_for_a_write_lock(start: Start) -> None:
    put("probe", a="old", b="other")
    writer = start()
    jobs: Jobs = [(condition(_LOOK, nonce, was="old"), []) for nonce in ("a", "b", "c")]
    with locked():
        assert submit(writer, *jobs) == [True, False, False]
    assert states() == {"a": "old", "b": "other"}
    assert stored() == set()


def test_records_and_effects_of_a_read_only_condition_are_written_only_if_it_holds(start: Start):
    put("probe", a="old")
    called, own, lost = threading.Event(), record(), record()
    effects = {note(called.set): noting(1)}
    results = submit(
        start(),
        (condition(_LOOK, "a", was="old", effects=effects), [own]),
        (condition(_LOOK, "b", was="old", effects={_SUM: noting(2)}), [lost]),
    )
    assert results == [True, False]
    assert stored() == {own.id}
    assert (notes(), total()) == ({1: "a"}, 0)
    assert called.is_set()


# --- what a batch consists of ---


def test_conditions_and_effects_have_the_same_order_for_any_order_of_submission() -> None:
    bound = [
        BoundCondition.of(condition(change, nonce, effects={_SUM: noting(1), _NOTE: noting(1)}), [])
        for change, nonce in ((_SET, "b"), (_ADD, "c"), (_SET, "a"), (_ADD, "d"))
    ]
    for each in (bound, bound[::-1]):
        found = {change: [one.nonce for one in of] for change, of in by_change(each).items()}
        assert found == {_ADD: ["c", "d"], _SET: ["a", "b"]}
        assert [change.name for change in by_change(each)] == ["probe_add", "probe_set"]
        assert [effect.name for effect in by_effect(each)] == ["probe_notes", "probe_summing"]
