"""Promises to operators: limits under a locked database, and records that survive a kill."""

import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from tests.e2e import raw
from tests.e2e.nodes import Node
from tests.e2e.processes import Server, copy_initialized
from tests.e2e.raw_sessions import begin, calling
from tests.e2e.test_database_restarts import (
    NOTE,
    NOTE_TO_ADA,
    becomes_ready,
    is_told_to_come_back,
    is_unready,
    locked,
)

PATIENCE = 30


@pytest.fixture(scope="module")
def lonely(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    home = tmp_path_factory.mktemp("lonely") / "home"
    copy_initialized(home)
    waits = {"MCPHOST_DATABASE_WAIT_SECONDS": "3"}
    node = Node(home, **waits)
    yield node
    node.stop()


@pytest.fixture
def alone(lonely: Node) -> Server:
    return lonely.server if lonely.lives else lonely.start()


def test_a_long_lock_on_the_sqlite_file_gives_errors_and_blocks_no_thread(
    alone: Server,
) -> None:
    session = begin(alone, "2025-11-25")
    with ThreadPoolExecutor(50) as pool:
        with locked(alone):
            sent = [pool.submit(raw.post, alone, NOTE, alone.token) for _ in range(50)]
            for each in sent:
                is_told_to_come_back(each.result(3 * PATIENCE), 503)
            said = session.send(calling("send_note", 1, **NOTE_TO_ADA))
            assert (said.status, "error" in said.message) == (200, True)
            assert is_unready(alone)
        assert becomes_ready(alone)
    assert raw.post(alone, NOTE, alone.token).status == 200
    assert "result" in session.send(calling("send_note", 2, **NOTE_TO_ADA)).message


def test_every_call_with_a_response_is_recorded_even_if_the_server_is_killed(
    alone: Server, lonely: Node
) -> None:
    before = _recorded(alone)
    answered: list[str] = []
    many = threading.Event()

    def calls(worker: int) -> None:
        for number in range(1000):
            text = f"{worker}-{number}"
            try:
                body = raw.call("send_note", {"recipient": "Ada", "note": text})
                reply = raw.post(alone, body, alone.token)
            except OSError:
                return
            if reply.status == 200:
                assert "isError" not in reply.json["result"]
                answered.append(text)
            if len(answered) >= 100:
                many.set()

    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(calls, worker) for worker in range(4)]
        assert many.wait(2 * PATIENCE)
        lonely.kill()
        for each in running:
            each.result(2 * PATIENCE)
    counts = _recorded(alone) - before
    assert counts["round.finished"] >= len(answered) >= 100
    assert counts["round.started"] >= counts["round.finished"]


def _recorded(server: Server) -> Counter[str]:
    with closing(sqlite3.connect(server.home / "db.sqlite3")) as database:
        query = (
            "SELECT action, count(*) FROM audit_entry WHERE target = 'send_note' "
            "AND method = 'tools/call' GROUP BY action"
        )
        return Counter(dict(database.execute(query).fetchall()))
