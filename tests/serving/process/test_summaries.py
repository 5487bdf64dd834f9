"""The thread that keeps the summaries of calls up to date."""

from uuid import uuid4

import pytest
from django.db import connection
from django.utils import timezone

from mcphost.serving.process import summaries
from mcphost.serving.process.summaries import SummariesThread
from tests.audit.asking import MINUTE, Story, keep

pytestmark = pytest.mark.django_db(transaction=True)


class Observed(SummariesThread):
    """Notes how late it says to be, in each pause."""

    def __init__(self) -> None:
        super().__init__()
        self.lags: list[float] = []

    def _pause(self, seconds: float) -> None:
        super()._pause(seconds)
        self.lags.append(self.lag())


def test_a_process_says_how_late_it_is_from_its_first_step_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After another process has stopped under load, that step takes minutes."""
    monkeypatch.setattr(summaries, "EVERY_SECONDS", 0.0)
    made = Story.of(uuid4(), at=timezone.now() - MINUTE)
    made.end()
    keep(made)
    thread = Observed()
    try:
        thread._step()
        assert thread.lags
        assert all(thread.lags)
        assert thread.facts()["leads"]
    finally:
        thread._leave()
        connection.close()  # the settings of its connection end with it
