"""The periodic work of a process."""

import logging
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, cast

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone

from mcphost.audit.records import Actor
from mcphost.identity import browser_sessions
from mcphost.identity.models import Token
from mcphost.identity.selectors import note_use
from mcphost.serving.process import housekeeping
from mcphost.serving.process.housekeeping import Housekeeping
from mcphost.serving.tasks import upkeep
from mcphost.vault.lifecycle import rotate
from mcphost.vault.services import ensure_ring
from tests.cast import Cast
from tests.vault.rings import have_waited, states

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE = 20


class Listening(logging.Handler):
    """Counts the errors that housekeeping logs."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = threading.Semaphore(0)

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR:
            self.heard.release()


@pytest.fixture
def errors() -> Iterator[Listening]:
    handler = Listening()
    logger = logging.getLogger(upkeep.__name__)
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def _last_used(token_id: str) -> Any:
    return Token.objects.values_list("last_used_at", flat=True).get(pk=token_id)


def test_noted_uses_are_written_at_the_latest_when_the_process_stops(cast: Cast) -> None:
    token_id = cast.owner.mcp_token.split("_")[1]
    keeping = Housekeeping()
    keeping.start()
    note_use(token_id, timezone.now())
    keeping.stop(PATIENCE)
    assert _last_used(token_id) is not None


def test_an_error_ends_neither_the_housekeeping_thread_nor_its_work(
    cast: Cast, errors: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "EVERY_SECONDS", 0.001)
    token_id = cast.owner.mcp_token.split("_")[1]
    note_use(token_id, _NO_TIME)
    keeping = Housekeeping()
    keeping.start()
    for _ in range(2):
        assert errors.heard.acquire(timeout=PATIENCE)
    note_use(token_id, timezone.now())
    keeping.stop(PATIENCE)
    assert _last_used(token_id) is not None


def test_a_serving_process_completes_a_due_key_rotation(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure_ring()
    have_waited(new := rotate(Actor.system()))
    Housekeeping().work()
    assert states()[new] == "active"


def test_expired_browser_sessions_are_deleted_in_short_transactions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = timezone.now()
    Session.objects.bulk_create(
        Session(
            session_key=f"{number:032}", session_data="", expire_date=now + timedelta(days=days)
        )
        for number, days in enumerate([-1] * 1100 + [1])
    )
    portions: list[int] = []
    monkeypatch.setattr(housekeeping, "CHORES", ())
    monkeypatch.setattr(upkeep, "CHORES", (upkeep._prune_browser_sessions,))
    prune = browser_sessions.prune
    monkeypatch.setattr(browser_sessions, "prune", lambda: portions.append(prune()) or portions[-1])
    Housekeeping().work()
    assert portions == [500, 500, 100]
    assert Session.objects.get().expire_date > now


def test_a_failing_chore_does_not_prevent_the_others(
    cast: Cast, errors: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure_ring()
    have_waited(new := rotate(Actor.system()))
    note_use(cast.owner.mcp_token.split("_")[1], _NO_TIME)
    Housekeeping().work()
    assert errors.heard.acquire(timeout=PATIENCE)
    assert states()[new] == "active"


_NO_TIME = cast(datetime, "not a time, which no database takes")
