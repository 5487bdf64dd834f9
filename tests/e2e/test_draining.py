"""A process leaves, and nobody notices: real processes, behind a proxy that honours `/readyz`."""

import http.client
import json
import os
import signal
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import backing, raw
from tests.e2e.processes import Server, free_port, manage, serving
from tests.e2e.proxy import Proxy, proxying

PATIENCE = 60
WORKERS = 4
STEP = b"notifications/progress"
STOPPED = "The server stopped before this was over"
LOAD: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("echo", {"text": "a"}),
    ("send_note", {"recipient": "Ada", "note": "a"}),
    ("countdown", {"start": 2, "seconds": 0.05}),
)


class Node:
    """One node of a service, on a port that it keeps from life to life."""

    def __init__(self, home: Path, **settings: str) -> None:
        self.port = free_port()
        self._home, self._settings = home, settings
        self._life = ExitStack()

    def start(self) -> Server:
        return self._life.enter_context(
            serving("uvicorn", self._home, port=self.port, **self._settings)
        )

    def stop(self) -> None:
        """SIGTERM; it drains, ends with status 0 and leaves nothing, or this fails."""
        self._life.close()


class Load:
    """Calls through a proxy without a pause, on connections that are kept while they may be."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._over = threading.Event()
        self.answers: Counter[str] = Counter()
        self.failures: list[str] = []
        self.went_on = threading.Event()

    def work(self, number: int) -> None:
        while not self._over.is_set():
            with closing(
                http.client.HTTPConnection("127.0.0.1", self._server.port, timeout=PATIENCE)
            ) as line:
                while not self._over.is_set() and self._call(line, LOAD[number % len(LOAD)]):
                    number += 1

    def end(self) -> None:
        self._over.set()

    def _call(self, line: http.client.HTTPConnection, what: tuple[str, Mapping[str, Any]]) -> bool:
        """One call; whether the connection is good for another."""
        message = raw.call(*what)
        fields = raw.headers(message, self._server.token)
        try:
            line.request("POST", "/t/demo/mcp", json.dumps(message), fields)
            response = line.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.failures.append(f"{what[0]}: {error!r}")
            return False
        if response.status == 200 and b'"result"' in body and b'"isError":true' not in body:
            self.answers[what[0]] += 1
            self.went_on.set()
        else:
            self.failures.append(f"{what[0]}: {response.status} {body!r}")
        return not response.will_close

    def has_gone_on(self) -> None:
        """Wait until another call has been answered."""
        self.went_on.clear()
        assert self.went_on.wait(PATIENCE)


@contextmanager
def _loading(server: Server) -> Iterator[Load]:
    load = Load(server)
    with ThreadPoolExecutor(WORKERS) as pool:
        working = [pool.submit(load.work, number) for number in range(WORKERS)]
        try:
            yield load
        finally:
            load.end()
            for each in working:
                each.result(PATIENCE)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[tuple[Proxy, Node, Node, Server]]:
    """Two nodes with PostgreSQL and Redis, and the server that a client sees: the proxy."""
    home = tmp_path / "home"
    with backing.database() as database, backing.redis(tmp_path) as redis, ExitStack() as lives:
        shared = {"DATABASE_URL": database, "REDIS_URL": redis, "MCPHOST_NOTICE_SECONDS": "1"}
        made = manage(home, "init", "--demo", env=shared)
        assert made.returncode == 0, made.stderr
        nodes = Node(home, **shared), Node(home, **shared)
        for node in nodes:
            seen = node.start()
            lives.callback(node.stop)
        with proxying(*(node.port for node in nodes)) as proxy:
            yield proxy, *nodes, replace(seen, port=proxy.port)


def test_a_rolling_restart_under_load_fails_not_one_call(
    service: tuple[Proxy, Node, Node, Server],
) -> None:
    proxy, first, second, server = service
    with _loading(server) as load, ThreadPoolExecutor(1) as pool:
        for leaving, staying in ((first, second), (second, first)):
            slow = pool.submit(_slow_calls, server, 2)
            load.has_gone_on()
            leaving.stop()
            proxy.wait_for(staying.port)
            load.has_gone_on()
            leaving.start()
            proxy.wait_for(first.port, second.port)
            load.has_gone_on()
            assert all(text == "Lift-off!" for text in slow.result(PATIENCE))
    assert (load.failures, proxy.failures) == ([], [])
    assert set(load.answers) == {name for name, _ in LOAD}
    assert proxy.served.keys() == {first.port, second.port}


def _slow_calls(server: Server, how_many: int) -> list[str]:
    """Calls that take longer than the notice, one on each node; what they answered."""
    message = raw.call("countdown", {"start": 3, "seconds": 1})
    with ThreadPoolExecutor(how_many) as pool:
        calling: list[Future[raw.Reply]] = [
            pool.submit(raw.post, server, message, server.token) for _ in range(how_many)
        ]
        replies = [each.result(PATIENCE) for each in calling]
    return [reply.json["result"]["content"][0]["text"] for reply in replies]


def test_notice_is_given_by_readyz_while_everything_is_still_served(home: Path) -> None:
    with serving("uvicorn", home, MCPHOST_NOTICE_SECONDS="3600") as server:
        os.kill(server.pid, signal.SIGTERM)
        while (reply := raw.send(server, "GET", "/readyz")).status == 200:
            pass
        assert reply.status == 503
        assert reply.json["problems"] == {"drain": "the server is about to stop"}
        assert raw.send(server, "GET", "/healthz").status == 200
        echo = raw.call("echo", {"text": "a"})
        while (answer := raw.post(server, echo, server.token)).headers.get("connection") != "close":
            assert answer.status == 200
        assert answer.status == 200
    # A second SIGTERM ended it, with status 0, though an hour had not passed.


def test_ctrl_c_gives_no_notice(home: Path) -> None:
    with serving("uvicorn", home, signal.SIGINT, MCPHOST_NOTICE_SECONDS="3600"):
        pass


def test_a_call_that_does_not_end_in_time_is_cancelled_told_so_and_recorded(home: Path) -> None:
    hung = raw.call("countdown", {"start": 60, "seconds": 2}, progressToken="steps")
    with (
        serving("uvicorn", home, MCPHOST_DRAIN_SECONDS="0.2") as server,
        raw.opened(server, hung) as line,
    ):
        raw.read_until(line, STEP)
        os.kill(server.pid, signal.SIGTERM)
        events = raw.read_to_the_end(line)
    assert STOPPED.encode() in events
    assert events.endswith(b"0\r\n\r\n"), "the stream has its end"
    with closing(sqlite3.connect(home / "db.sqlite3")) as database:
        query = "SELECT outcome, reason FROM audit_entry WHERE action = 'round.finished'"
        assert database.execute(query).fetchall() == [("cancelled", STOPPED)]


def test_a_listener_hears_that_it_is_over(home: Path) -> None:
    listen = raw.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    with serving("uvicorn", home) as server, raw.opened(server, listen) as line:
        raw.read_until(line, b"notifications/subscriptions/acknowledged")
        os.kill(server.pid, signal.SIGTERM)
        events = raw.read_to_the_end(line)
    assert b'"resultType":"complete"' in events
    assert events.endswith(b"0\r\n\r\n"), "the stream has its end"
