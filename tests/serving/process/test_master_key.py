"""The master key is checked at the start, or as soon as the database can be reached."""

import logging
import os
import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test import override_settings

from mcphost.serving.process import startup_checks
from mcphost.serving.process.startup_checks import KeyCheck
from mcphost.vault.services import ensure_ring

pytestmark = pytest.mark.django_db(transaction=True)


def _unreachable(*_: Any) -> None:
    raise OperationalError("it is away\nand that is all")


def _becomes(test: Callable[[], bool]) -> bool:
    ends = time.monotonic() + 20
    while not test() and time.monotonic() < ends:
        time.sleep(0.01)  # between looks at another thread
    return test()


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> KeyCheck:
    """A check that has found the database away."""
    monkeypatch.setattr(startup_checks, "AGAIN_SECONDS", 0.01)
    caplog.set_level(logging.INFO)
    check = KeyCheck()
    with connection.execute_wrapper(_unreachable):
        check.check()
        check.check()
    return check


def test_a_correct_master_key_starts_no_check_thread() -> None:
    check = KeyCheck()
    check.check()
    check.start()
    check.stop(1)
    assert check.problem() is None
    assert check._thread is None


@pytest.mark.sqlite
def test_an_unreachable_sqlite_file_is_an_error_and_not_waited_for() -> None:
    with connection.execute_wrapper(_unreachable), pytest.raises(OperationalError):
        KeyCheck().check()


@pytest.mark.postgresql
def test_the_check_runs_as_soon_as_the_database_is_reachable(
    check: KeyCheck, caplog: pytest.LogCaptureFixture
) -> None:
    assert check.problem()
    check.start()
    assert _becomes(lambda: check.problem() is None)
    check.stop(20)
    said = [
        record.getMessage() for record in caplog.records if record.name == startup_checks.__name__
    ]
    assert said[-1] == "the database has been reached"
    assert "that is all" not in caplog.text


@pytest.mark.postgresql
def test_a_database_with_other_keys_ends_the_server(check: KeyCheck) -> None:
    ensure_ring()
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        with override_settings(MCPHOST_MASTER_KEY=lambda: os.urandom(32)):
            check.start()
            assert _becomes(lambda: heard == [signal.SIGTERM])
            check.stop(20)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert check.problem()
