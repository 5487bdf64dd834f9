"""Tests of counting password attempts in the database: for all processes, before any hashing."""

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta

import pytest
from django.db import connection, connections
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from mcphost.audit.models import Entry
from mcphost.identity import attempts, passwords
from mcphost.identity.attempts import (
    ADDRESS_FAILURES,
    FAILURES,
    MAX_PAUSE_SECONDS,
    NAME_FAILURES,
    Keys,
    NotCheckedError,
    Unchecked,
    pause_seconds,
)
from mcphost.identity.models import SignInAttempts
from tests.cast import Cast

HERE = "192.0.2.1"
PATIENCE = 30


def refused(name: str, address: str = HERE, within: int = 900) -> Unchecked:
    """Return the reason of a refusal, and check that its delay is about `within` seconds."""
    with pytest.raises(NotCheckedError) as refusal:
        passwords.check(name, address, lambda: pytest.fail("it was hashed"))
    assert max(1, within - 20) <= refusal.value.seconds <= within
    return refusal.value.reason


def fail(name: str, address: str = HERE, times: int = 1) -> None:
    for _ in range(times):
        assert passwords.check(name, address, lambda: False) is False


@pytest.fixture
def long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pauses so long that they do not end during a test on a slow machine."""
    monkeypatch.setattr(attempts, "FIRST_PAUSE_SECONDS", 100)


def move_back(by: timedelta) -> None:
    """Move the stored times back, as if that time had passed."""
    SignInAttempts.objects.update(
        last_at=F("last_at") - by,
        previous_at=F("previous_at") - by,
        expires_at=F("expires_at") - by,
    )


@pytest.mark.django_db(transaction=True)
def test_eight_of_forty_concurrent_attempts_are_hashed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "_slots", passwords.HashingSlots(40))
    at_once = threading.Barrier(40)
    hashed = Counter[str]()

    def guess(_: int) -> str:
        try:
            at_once.wait(PATIENCE)
            passwords.check("olga", HERE, lambda: hashed.update(["guess"]))
            return "hashed"
        except NotCheckedError as refusal:
            return refusal.reason
        finally:
            connections.close_all()

    with ThreadPoolExecutor(40) as pool:
        answers = Counter(pool.map(guess, range(40)))
    assert answers == {"hashed": FAILURES, Unchecked.LOCKED: 40 - FAILURES}
    assert hashed["guess"] == FAILURES


@pytest.mark.django_db(transaction=True)
def test_concurrent_password_hashing_is_bounded_and_further_attempts_wait_or_are_refused() -> None:
    running, let_go = threading.Semaphore(0), threading.Event()
    most, now, lock = 0, 0, threading.Lock()

    def verify() -> bool:
        nonlocal most, now
        with lock:
            now += 1
            most = max(most, now)
        running.release()
        let_go.wait(PATIENCE)
        with lock:
            now -= 1
        return True

    def sign_in(number: int) -> object:
        try:
            return passwords.check(f"user-{number}", HERE, verify)
        except NotCheckedError as refusal:
            return refusal.reason
        finally:
            connections.close_all()

    with ThreadPoolExecutor(20) as pool:
        busy = [pool.submit(sign_in, number) for number in range(passwords.AT_ONCE)]
        for _ in busy:
            assert running.acquire(timeout=PATIENCE)
        late = [pool.submit(sign_in, number) for number in range(10, 20)]
        answers = [each.result(PATIENCE) for each in late]
        let_go.set()
        assert [each.result(PATIENCE) for each in busy] == [True] * passwords.AT_ONCE
    assert set(answers) == {Unchecked.BUSY}
    assert most == passwords.AT_ONCE


@pytest.mark.django_db
def test_a_lock_ends_with_the_window_of_its_first_attempt() -> None:
    fail("olga")
    move_back(timedelta(minutes=10))
    fail("olga", times=FAILURES - 1)
    assert refused("olga", within=300) is Unchecked.LOCKED
    move_back(timedelta(minutes=5))
    fail("olga", times=FAILURES)
    assert refused("olga") is Unchecked.LOCKED


@pytest.mark.django_db
def test_a_refused_attempt_is_not_counted_and_costs_one_select() -> None:
    fail("olga", times=FAILURES)
    before = sorted(SignInAttempts.objects.values_list())
    assert len(before) >= 3
    assert not [row for row in before if "olga" in str(row) or HERE in str(row)]
    for _ in range(3):
        with CaptureQueriesContext(connection) as queries:
            refused("olga")
        (only,) = queries.captured_queries
        assert only["sql"].startswith("SELECT")
    assert sorted(SignInAttempts.objects.values_list()) == before


@pytest.mark.django_db
def test_an_address_is_locked_over_all_names_and_with_its_ipv6_network() -> None:
    for number in range(ADDRESS_FAILURES):
        fail(f"user-{number}")
    assert refused("olga") is Unchecked.LOCKED
    fail("olga", "192.0.2.2")
    for number in range(FAILURES):
        fail("olga", f"2001:db8:0:1::{number:x}")
    assert refused("olga", "2001:db8:0:1:ffff::1") is Unchecked.LOCKED
    fail("olga", "2001:db8:0:2::1")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("olga", HERE), ("OLGA", HERE)),
        (("olga", HERE), ("\uff4flga", HERE)),
        (("olga", HERE), ("olga", f"::ffff:{HERE}")),
        (("x" * 150, HERE), ("x" * 100_000, HERE)),
    ],
)
def test_spellings_of_one_name_or_address_count_together(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    assert Keys.of(*one) == Keys.of(*other)


@pytest.mark.django_db
def test_a_correct_password_removes_only_its_own_attempt() -> None:
    fail("olga", times=3)
    assert passwords.check("olga", HERE, lambda: "olga") == "olga"
    counts = SignInAttempts.objects.filter(id__in=Keys.of("olga", HERE).sorted())
    assert list(counts.values_list("count", flat=True)) == [3, 3, 3]


@pytest.mark.django_db
def test_an_attempt_that_ends_in_an_error_stays_counted() -> None:
    def unreachable() -> bool:
        raise ConnectionError

    for _ in range(FAILURES):
        with pytest.raises(ConnectionError):
            passwords.check("olga", HERE, unreachable)
    assert refused("olga") is Unchecked.LOCKED


def test_pauses_grow_with_the_failures_at_a_name_and_are_bounded() -> None:
    pauses = [pause_seconds(failures) for failures in range(200)]
    assert set(pauses[:NAME_FAILURES]) == {0}
    assert pauses[NAME_FAILURES] == 2
    assert pauses == sorted(pauses)
    assert pause_seconds(10**9) == MAX_PAUSE_SECONDS == pauses[-1]


@pytest.mark.django_db
def test_failures_at_a_user_name_delay_only_addresses_that_failed(long_pauses: None) -> None:
    for number in range(NAME_FAILURES):
        fail("olga", f"198.51.100.{number}")
    assert refused("olga", "198.51.100.3", within=100) is Unchecked.PAUSED
    assert passwords.check("olga", HERE, lambda: True)
    move_back(timedelta(seconds=101))
    fail("olga", "198.51.100.3")
    assert refused("olga", "198.51.100.3", within=100) is Unchecked.PAUSED


@pytest.mark.django_db
def test_a_pause_cannot_be_raced(long_pauses: None) -> None:
    for number in range(NAME_FAILURES):
        fail("olga", f"198.51.100.{number}")
    keys = Keys.of("olga", HERE)
    attempts.check_only(keys)
    attempts.check_only(keys)
    attempts.reserve(keys)
    with pytest.raises(NotCheckedError, match="paused"):
        attempts.reserve(keys)


@contextmanager
def new_entries() -> Iterator[list[Entry]]:
    before = set(Entry.objects.values_list("id", flat=True))
    found: list[Entry] = []
    yield found
    found.extend(Entry.objects.exclude(id__in=before).order_by("id"))


def test_the_first_failure_and_the_lock_are_recorded(cast: Cast) -> None:
    with new_entries() as entries:
        fail("OWNER", times=FAILURES)
        refused("owner")
    assert [(each.action, each.actor_label, each.facts) for each in entries] == [
        ("signin.failed", HERE, {"attempts": 1, "user": "owner"}),
        ("signin.locked", HERE, {"attempts": FAILURES, "user": "owner"}),
    ]
    assert {each.target for each in entries} == {str(cast.owner.user.pk)}
    assert {each.tenant for each in entries} == {None}


@pytest.mark.parametrize("name", ["x" * 60_000, "a password in the wrong field"])
def test_attempts_for_unknown_or_overlong_user_names_are_not_recorded(
    cast: Cast, name: str
) -> None:
    with new_entries() as entries:
        fail(name)
    (only,) = entries
    assert only.facts == {"attempts": 1, "user": "an unknown name"}
