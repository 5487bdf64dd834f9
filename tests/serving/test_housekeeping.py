"""What a process does now and then beside its requests."""

import logging
import threading
from collections.abc import Iterator
from datetime import datetime
from typing import Any, cast

import pytest
from django.utils import timezone

from mcphost.identity.last_use import last_use
from mcphost.identity.models import Token
from mcphost.serving import housekeeping
from mcphost.serving.housekeeping import Housekeeping
from tests.cast import Cast

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE = 20


class Listening(logging.Handler):
    """Counts the errors that housekeeping goes on after."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = threading.Semaphore(0)

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR:
            self.heard.release()


@pytest.fixture
def errors() -> Iterator[Listening]:
    handler = Listening()
    logger = logging.getLogger(housekeeping.__name__)
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


def _last_used(token_id: str) -> Any:
    return Token.objects.values_list("last_used_at", flat=True).get(pk=token_id)


def test_what_was_noted_is_written_at_the_latest_at_the_end(cast: Cast) -> None:
    token_id = cast.owner.mcp_token.split("_")[1]
    keeping = Housekeeping()
    keeping.start()
    last_use.note(token_id, timezone.now())
    keeping.stop(PATIENCE)
    assert _last_used(token_id) is not None


def test_an_error_ends_neither_the_thread_nor_its_work(
    cast: Cast, errors: Listening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "EVERY_SECONDS", 0.001)
    token_id = cast.owner.mcp_token.split("_")[1]
    last_use.note(token_id, _NO_TIME)
    keeping = Housekeeping()
    keeping.start()
    for _ in range(2):
        assert errors.heard.acquire(timeout=PATIENCE)
    last_use.note(token_id, timezone.now())
    keeping.stop(PATIENCE)
    assert _last_used(token_id) is not None


_NO_TIME = cast(datetime, "not a time, which no database takes")
