import threading

import pytest

from mcphost.observability import counters
from mcphost.observability.counters import Board, Counter, Gauge


def test_every_number_is_there_from_the_start():
    assert Board().snapshot() == {name.value: 0 for name in (*Counter, *Gauge)}


def test_no_counter_and_gauge_share_a_name():
    assert not {name.value for name in Counter} & {name.value for name in Gauge}


def test_a_counter_rises_and_never_falls():
    board = Board()
    board.count(Counter.ROUNDS)
    board.count(Counter.ROUNDS, 2)
    assert board.snapshot()["rounds"] == 3
    with pytest.raises(ValueError, match="never falls"):
        board.count(Counter.ROUNDS, -1)


def test_a_gauge_rises_falls_and_can_be_placed():
    board = Board()
    board.shift(Gauge.STREAMS_OPEN, 3)
    board.shift(Gauge.STREAMS_OPEN, -1)
    assert board.snapshot()["streams_open"] == 2
    board.place(Gauge.STREAMS_OPEN, 7)
    assert board.snapshot()["streams_open"] == 7


def test_no_count_is_lost_between_threads():
    board = Board()
    threads = [
        threading.Thread(target=lambda: [board.count(Counter.REQUESTS) for _ in range(500)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert board.snapshot()["requests"] == 2000


def test_the_process_has_one_board():
    before = counters.snapshot()["feed_gaps"]
    counters.count(Counter.FEED_GAPS)
    assert counters.snapshot()["feed_gaps"] == before + 1
