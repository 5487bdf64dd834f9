"""The writer, with a real database and real failures of it."""

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from django.db import OperationalError, connection

from mcphost.audit.models import Entry, Payload
from mcphost.audit.ports import payload_cipher, set_payload_cipher
from mcphost.audit.records import Record, new_id
from mcphost.audit.writer import writer as writer_module
from mcphost.audit.writer.writer import RecordLostError, RecordRefusedError, Writer
from mcphost.observability import counters
from mcphost.observability.availability import availability
from tests.audit.ciphers import BrokenCipher, GateCipher
from tests.audit.conftest import Start
from tests.audit.databases import AT, cut_connections, full_disk, impatient, locked, record, stored
from tests.audit.submitting import submit_and_wait

pytestmark = pytest.mark.django_db(transaction=True)

TENANT = uuid4()


def commit(writer: Writer, *jobs: list[Record]) -> list[BaseException | None]:
    """Submit each job from an event loop and wait for all; return the error of each, or None."""

    async def submitting() -> list[BaseException | None]:
        futures = [writer.submit(job) for job in jobs]
        return await asyncio.wait_for(asyncio.gather(*futures, return_exceptions=True), 60)

    return asyncio.run(submitting())


def in_background(function: Callable[[], Any]) -> Callable[[], Any]:
    """Run `function` in a thread; call what is returned to wait for its result."""
    results: list[Any] = []

    def keeping() -> None:
        try:
            results.append(function())
        except Exception as error:  # noqa: BLE001 - the test looks at it
            results.append(error)

    thread = threading.Thread(target=keeping)
    thread.start()

    def waiting() -> Any:
        thread.join(60)
        assert not thread.is_alive()
        return results[0]

    return waiting


def becomes(test: Callable[[], bool]) -> bool:
    until = time.monotonic() + 20
    while not test():
        if time.monotonic() > until:
            return False
        threading.Event().wait(0.001)  # poll another thread
    return True


def block(writer: Writer, gate: GateCipher) -> Callable[[], Any]:
    """Keep the writer's thread busy with one record until the gate is opened."""
    held = in_background(lambda: submit_and_wait(writer, [with_payload()]))
    gate.await_arrival()
    return held


def with_payload(**columns: Any) -> Record:
    return record(tenant=TENANT, payload={"request": {"text": "hello"}}, **columns)


def test_a_submitted_record_is_in_the_database_when_its_future_is_done(start: Start) -> None:
    full = Record(
        new_id(), AT, TENANT, uuid4(), uuid4(), 3, 120, 300, 200, *(f"text {n}" for n in range(17)),
        {"number": 1, "list": ["ü", None]}, {"request": {"a": 1}, "result": "ok"},
    )  # fmt: skip
    assert commit(start(), [full, record()]) == [None]

    entry = Entry.objects.get(id=full.id)
    for name in Record._fields[:-1]:
        assert getattr(entry, name) == getattr(full, name), name
    payload = Payload.objects.get()
    assert (payload.entry, payload.tenant, payload.key_id) == (full.id, TENANT, "k1")
    cipher = payload_cipher()
    plaintext = cipher.open(TENANT, "k1", bytes(payload.ciphertext))
    assert plaintext == b'{"request":{"a":1},"result":"ok"}'
    assert len(bytes(entry.commitment or b"")) == 32


def test_all_records_of_many_callers_are_written(start: Start) -> None:
    jobs = [[record(), with_payload(), record()] for _ in range(700)]
    written, rows = counters.records_written.value, counters.commit_rows.count()
    assert commit(start(), *jobs) == [None] * 700
    assert counters.records_written.value == written + 2100
    assert rows + 2100 // 502 < counters.commit_rows.count() == counters.commit_seconds.count()
    assert stored() == {each.id for job in jobs for each in job}
    assert Payload.objects.count() == 700


def test_an_empty_submission_succeeds_and_a_repeated_record_is_written_once(start: Start) -> None:
    one, writer = with_payload(), start()
    assert commit(writer, [], [one, one], [one]) == [None] * 3
    assert commit(writer, [one]) == [None]
    assert stored() == {one.id}
    assert Payload.objects.count() == 1


@pytest.mark.parametrize("text", ["\0", "a\0b\0", "\ud800", "ü\0\udfff", "\\u0000"])
def test_text_that_databases_refuse_is_written_escaped(start: Start, text: str) -> None:
    columns = dict.fromkeys(Record._fields[9:-2], text)
    odd = record(**columns, facts={text: [text, {"k": text}]}, tenant=TENANT, payload={"p": text})
    assert commit(start(), [odd]) == [None]
    clean = text.replace("\0", "\\u0000").encode("utf-8", "backslashreplace").decode()
    entry = Entry.objects.get()
    assert {getattr(entry, name) for name in columns} == {clean}
    assert entry.facts == {clean: [clean, {"k": clean}]}


BAD = [
    {"duration_us": 2**70},
    {"target": None},
    {"at": None},
    {"facts": {"a": object()}},
    {"payload": {"a": 1}, "tenant": None},
]


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("place", [0, 29])
def test_a_bad_row_fails_its_own_submission_and_the_others_are_written(start, gate, bad, place):
    writer = start()
    held = block(writer, gate)
    jobs = [[record(), record()] for _ in range(29)]
    jobs.insert(place, [record(), record(**bad)])
    gate.open_gate()
    results = commit(writer, *jobs)
    assert held() is None
    assert isinstance(results.pop(place), RecordRefusedError)
    assert results == [None] * 29
    refused = {each.id for each in jobs[place]}
    assert stored().isdisjoint(refused), "what was submitted together lands together or not at all"
    assert len(stored()) == 29 * 2 + 1


@pytest.mark.parametrize(
    ("cipher", "words"),
    [(None, "no payload cipher"), (BrokenCipher(ValueError("canary: hello")), "")],
    ids=["none", "one that raises"],
)
def test_a_failing_cipher_fails_its_own_record_only_and_leaks_no_plaintext(
    start, caplog, cipher, words
):
    set_payload_cipher(cipher)
    good = record()
    refused, landed = commit(start(), [with_payload()], [good])
    assert isinstance(refused, RecordRefusedError)
    assert words in str(refused)
    assert landed is None
    assert stored() == {good.id}
    assert "canary" not in f"{caplog.text} {refused}"


def test_the_writer_retries_while_a_payload_key_cannot_be_read(start: Start) -> None:
    set_payload_cipher(BrokenCipher(OperationalError("gone for a moment"), times=3))
    assert commit(start(), [with_payload()], [record()]) == [None, None]
    assert len(stored()) == 2


def test_a_submission_that_times_out_on_a_locked_database_writes_no_part_of_itself(
    start, failures, clock, monkeypatch
):
    impatient(monkeypatch)
    writer = start(give_up=10)
    with locked():
        old = in_background(lambda: submit_and_wait(writer, [with_payload(), record()]))
        failures.wait()
        clock.now += 9
        young_record = record()
        young = in_background(lambda: submit_and_wait(writer, [young_record]))
        clock.now += 1
        assert isinstance(old(), RecordLostError)
    assert young() is None, "who came later has time left"
    assert stored() == {young_record.id}


@pytest.mark.sqlite  # the file of this test can be full
def test_a_full_disk_loses_whole_records_and_writing_resumes_when_space_is_free(
    start, failures, clock
):
    writer = start()
    large = record(tenant=TENANT, payload={"text": "x" * 200_000})
    with full_disk():
        waiting = in_background(lambda: submit_and_wait(writer, [record(), large]))
        failures.wait()
        assert writer.is_behind()
        clock.now += 10
        assert isinstance(waiting(), RecordLostError)
        assert stored() == set()
        assert Payload.objects.count() == 0
    assert commit(writer, [large]) == [None]
    assert not writer.is_behind()
    assert stored() == {large.id}


def test_the_writer_replaces_a_lost_connection(start, failures, monkeypatch):
    impatient(monkeypatch)
    writer = start()
    first, second = record(), with_payload()
    assert commit(writer, [first]) == [None]
    if connection.vendor == "postgresql":
        cut_connections()
        assert commit(writer, [second]) == [None]
        failures.wait()
    else:  # a connection to a file cannot be lost, but after any error it is replaced too
        with locked():
            waiting = in_background(lambda: submit_and_wait(writer, [second]))
            failures.wait()
        assert waiting() is None
    assert stored() == {first.id, second.id}


def test_records_whose_commit_was_not_confirmed_are_written_exactly_once(start, monkeypatch):
    confirmed = writer_module.sink
    losses = [True, True]

    def unconfirmed(opened: Any) -> Any:
        made = confirmed(opened)
        write = made.write

        def commit_and_lose(rows: Any) -> None:
            write(rows)
            if losses:
                losses.pop()
                raise OperationalError("the connection was lost in the commit")

        monkeypatch.setattr(made, "write", commit_and_lose)
        return made

    monkeypatch.setattr(writer_module, "sink", unconfirmed)
    mine = [with_payload(), record()]
    assert commit(start(), mine) == [None]
    assert losses == []
    assert stored() == {each.id for each in mine}
    assert (Entry.objects.count(), Payload.objects.count()) == (2, 1)


def test_stopping_the_writer_writes_the_queued_records(start: Start, gate: GateCipher) -> None:
    writer = start()
    held = block(writer, gate)
    more = [record() for _ in range(50)]
    waiting = [in_background(lambda r=r: submit_and_wait(writer, [r])) for r in more]
    assert becomes(lambda: writer.waiting() >= 50)
    stopped = in_background(lambda: writer.stop(20))
    gate.open_gate()
    assert stopped() is True
    assert [each() for each in [held, *waiting]] == [None] * 51
    assert len(stored()) == 51


def test_a_stopped_or_unstarted_writer_refuses_records_until_it_is_started(start: Start):
    assert Writer().stop() is True
    with pytest.raises(RecordLostError):
        submit_and_wait(Writer(), [record()])
    writer = start()
    assert writer.problem() is None
    assert writer.stop(20) is True
    assert writer.stop(20) is True
    assert writer.refuse_new()
    assert writer.problem() == "the record writer is not running"
    with pytest.raises(RecordLostError, match="is not running"):
        submit_and_wait(writer, [record()])
    (result,) = commit(writer, [record()])
    assert isinstance(result, RecordLostError)
    writer.start()
    thread = writer._thread
    writer.start()
    assert writer._thread is thread, "starting twice leaves one thread"
    assert commit(writer, [record()]) == [None]


def test_stopping_the_writer_ends_even_if_the_database_stays_locked(start, failures, monkeypatch):
    impatient(monkeypatch)
    writer = start()
    with locked():
        waiting = in_background(lambda: submit_and_wait(writer, [record()]))
        failures.wait()
        assert writer.stop(0) is False
        assert isinstance(waiting(), RecordLostError)
    writer.start()
    assert commit(writer, [record()]) == [None]
    assert len(stored()) == 1


def test_the_writer_retries_a_locked_database_while_new_calls_wait(start, failures, monkeypatch):
    impatient(monkeypatch)
    writer = start()
    mine = [with_payload(), record()]
    with locked():
        waiting = in_background(lambda: submit_and_wait(writer, mine))
        failures.wait()
        assert availability.unreachable
        assert writer.is_behind()
        assert not writer.refuse_new(), "who waits is not refused"
        failures.wait()
    assert waiting() is None
    assert stored() == {each.id for each in mine}
    assert not writer.is_behind()
    assert becomes(lambda: not availability.unreachable)


def test_the_process_is_unready_while_the_oldest_record_waits_too_long(start, gate, clock):
    writer = start(late=2)
    held = block(writer, gate)
    clock.now += 1.9
    assert writer.problem() is None
    assert not writer.is_behind()
    younger = in_background(lambda: submit_and_wait(writer, [record()]))
    clock.now += 0.1
    assert writer.is_behind()
    assert writer.problem() == "the oldest record has been waiting for 2 s"
    gate.open_gate()
    assert held() is None
    assert younger() is None
    assert commit(writer, [record()]) == [None]
    assert writer.problem() is None


def test_the_queue_of_the_writer_is_bounded(start: Start, gate: GateCipher) -> None:
    writer = start(waiting=4)
    held = block(writer, gate)

    async def filling() -> None:
        futures = [writer.submit([record()]) for _ in range(2)]
        assert writer.problem() == "the record writer's queue is filling up"
        futures += [writer.submit([record()]) for _ in range(2)]
        with pytest.raises(RecordLostError, match="full"):
            await writer.submit([record()])
        gate.open_gate()
        await asyncio.gather(*futures)

    asyncio.run(filling())
    assert held() is None
    assert writer.problem() is None


def test_a_record_is_written_even_if_its_submitter_stops_waiting(
    start: Start, gate: GateCipher
) -> None:
    writer = start()
    cancelled, abandoned = with_payload(), record()

    async def leaving() -> None:
        future = writer.submit([cancelled])
        await asyncio.to_thread(gate.await_arrival)
        future.cancel()
        writer.submit([abandoned])

    asyncio.run(leaving())
    with pytest.raises(TimeoutError):
        submit_and_wait(writer, [record()], timeout=0)
    gate.open_gate()

    async def staying() -> None:
        """The loop goes on, and leaves a cancelled wait alone when its record lands."""
        writer.submit([record()]).cancel()
        await writer.submit([record()])

    asyncio.run(staying())
    assert writer.stop(20) is True
    assert {cancelled.id, abandoned.id} <= stored()
    assert len(stored()) == 5


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_dead_writer_thread_fails_its_records_and_reports_a_problem(start: Start) -> None:
    set_payload_cipher(BrokenCipher(SystemExit(), times=1))
    writer = start()
    results = commit(writer, [with_payload()], [record()])
    assert [type(each) for each in results] == [RecordLostError, RecordLostError]
    assert writer._thread is not None
    writer._thread.join(20)
    assert writer.problem() == "the record writer's thread has died"
    with pytest.raises(RecordLostError, match="has stopped"):
        submit_and_wait(writer, [record()])
    writer.start()
    assert commit(writer, [with_payload()]) == [None]
