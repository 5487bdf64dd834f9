"""The thread that keeps the summaries of calls up to date."""

import threading

import pytest

from mcphost.serving.process.summaries import MAX_PAUSE, MAX_SHARE, SHARE, SummariesThread


class Waits(threading.Event):
    """Notes for how long it would wait, and does not."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: list[float] = []

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.seconds.append(timeout)
        return False


@pytest.mark.parametrize("took", [0.01, 0.1, 10.0, 600.0])
def test_the_pause_after_work_is_a_bounded_share_of_its_duration(
    took: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    thread, waits = SummariesThread(), Waits()
    monkeypatch.setattr(thread, "_stopping", waits)
    thread._pause(took)
    (pause,) = waits.seconds
    assert min(took * (1 / MAX_SHARE - 1), MAX_PAUSE) <= pause
    assert pause <= min(took * (1 / SHARE - 1), MAX_PAUSE)
