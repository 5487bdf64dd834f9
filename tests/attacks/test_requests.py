"""Requests to Django's pages release the database connections and files that they use.

Who sends slowly, does not read, or asks for too much at once is tested in `tests/transport/test_django_requests.py`.
"""

import http.client
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from itertools import cycle, islice
from math import inf
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from mcphost.serving.process.lifecycle import CONNECTIONS
from mcphost.settings import Environment
from mcphost.transport.django_requests import PER_ADDRESS
from tests.e2e.admin import Admin
from tests.e2e.processes import Server

PATIENCE = 30.0
REQUESTS = 400
SLOTS: int = Environment.model_fields["django_requests"].default
STILL_OPENED = 3
"""Threads of the process's own that may begin to use the database while a test runs."""
FILES_OF_A_CONNECTION = 3
"""SQLite's: the database, its log, and the log's index."""
NOWHERE = ("/admin/nothing/here/", "/static/nothing.css", "/nothing", "/t/x/done/a/b")
VALUES = {
    "slug": "demo",
    "link": "made-up",
    "verb": "publish",
    "user_id": "1",
    "key_id": "k1",
    "token_id": "abc",
    "function": "demo.echo",
}


def pages() -> list[str]:
    """A path for every URL pattern of Django's, with ids that exist and ids that do not."""
    routes = [route for pattern in get_resolver().url_patterns for route in _routes(pattern)]
    return [re.sub(r"<(?:(\w+):)?(\w+)>", _value, f"/{route}") for route in routes]


def _routes(pattern: URLPattern | URLResolver, before: str = "") -> Iterator[str]:
    route = before + str(pattern.pattern)
    if isinstance(pattern, URLResolver):
        for inner in pattern.url_patterns:
            yield from _routes(inner, route)
    else:
        yield route


def _value(found: re.Match[str]) -> str:
    return str(uuid4()) if found[1] == "uuid" else VALUES[found[2]]


class Visitor:
    """A browser without pictures, which keeps one connection."""

    def __init__(self, server: Server, cookie: str = "") -> None:
        self.cookie = cookie
        self.statuses: Counter[int] = Counter()
        self.line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)

    def ask(self, path: str) -> None:
        self.line.request("GET", path, headers={"Cookie": self.cookie})
        response = self.line.getresponse()
        response.read()
        self.statuses[response.status] += 1

    def head(self, method: str, path: str, *fields: str) -> bytes:
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Cookie: {self.cookie}", *fields]
        return "\r\n".join([*lines, "", ""]).encode()


Visit = Callable[..., Visitor]


@pytest.fixture
def visit() -> Iterator[Visit]:
    """Makes visitors, who are administrators or strangers; their connections are closed at the end."""
    with ExitStack() as lines:

        def begin(server: Server, signed_in: bool = False) -> Visitor:
            password = (server.home / "admin-password").read_text().strip()
            visitor = Visitor(server, Admin(server.port, password).cookie if signed_in else "")
            lines.callback(visitor.line.close)
            return visitor

        yield begin


class Gauge(NamedTuple):
    """Counts what a process holds."""

    count: Callable[[], int]
    each: int
    most: float


@contextmanager
def gauge(server: Server) -> Iterator[Gauge]:
    environment = Path(f"/proc/{server.pid}/environ").read_bytes().split(b"\0")
    url = dict(each.split(b"=", 1) for each in environment if b"=" in each).get(b"DATABASE_URL")
    if not url:
        files = Path(f"/proc/{server.pid}/fd")
        yield Gauge(lambda: len(list(files.iterdir())), FILES_OF_A_CONNECTION, inf)
        return
    at = urlsplit(url.decode())._replace(scheme="postgresql")
    name = at.path.removeprefix("/")
    elsewhere = at._replace(path="/postgres").geturl()
    with closing(psycopg.connect(elsewhere, autocommit=True)) as link:
        statement = "SELECT count(*) FROM pg_stat_activity WHERE datname = %s"

        def count() -> int:
            row = link.execute(statement, [name]).fetchone()
            return int(row[0]) if row else 0

        yield Gauge(count, 1, CONNECTIONS + SLOTS)


def comes_down_to(count: Callable[[], int], most: int) -> int:
    """What is held once it is not more than `most`; or after a while, what it still is."""
    deadline = time.monotonic() + PATIENCE
    while (held := count()) > most and time.monotonic() < deadline:
        time.sleep(0.05)  # between looks at another process; nothing it does could wake us
    return held


def asked_by(visitors: list[Visitor], paths: list[str]) -> None:
    count = len(visitors)
    with ThreadPoolExecutor(count) as pool:
        for number, visitor in enumerate(visitors):
            share = paths[number::count]
            pool.submit(lambda who=visitor, its=share: [who.ask(path) for path in its])


def test_hundreds_of_requests_to_every_page_leak_no_connection_or_file(
    postgresql_server: Server, visit: Visit
) -> None:
    every = [*pages(), *NOWHERE, *(f"/t/x/done/{uuid4()}" for _ in range(40))]
    signed_in = [visit(postgresql_server, signed_in=True) for _ in range(2)]
    strangers = [visit(postgresql_server) for _ in range(2)]
    visitors = [*signed_in, *strangers]
    with gauge(postgresql_server) as (count, each, documented):
        asked_by(visitors, every)
        before = count()
        peak = _Peak(count)
        with peak:
            asked_by(signed_in, list(islice(cycle(every), REQUESTS // 2)))
            asked_by(strangers, list(islice(cycle(every), REQUESTS // 2)))
        most = before + STILL_OPENED * each
        assert comes_down_to(count, most) <= most
        assert peak.most <= before + (STILL_OPENED + SLOTS) * each + len(visitors)
        assert peak.most <= documented
    statuses = sum((visitor.statuses for visitor in visitors), Counter[int]())
    assert statuses.total() == REQUESTS + len(every)
    assert {200, 302, 404, 405} <= set(statuses) <= {200, 302, 400, 401, 403, 404, 405}


def test_aborted_requests_leak_no_connection_or_file(sqlite_server: Server, visit: Visit) -> None:
    visitor = visit(sqlite_server, signed_in=True)
    form = b"username=admin&password=wrong&csrfmiddlewaretoken=" + b"x" * 64
    of_form = ("Content-Type: application/x-www-form-urlencoded", f"Content-Length: {len(form)}")
    with gauge(sqlite_server) as (count, each, _):
        visitor.ask("/admin/")
        before = count()
        for number in range(80):
            with socket.create_connection(("127.0.0.1", sqlite_server.port), PATIENCE) as line:
                match number % 4:
                    case 0:  # while its page is made
                        line.sendall(visitor.head("GET", "/admin/calls/"))
                    case 1:
                        line.sendall(visitor.head("GET", f"/t/x/done/{number}"))
                    case 2:
                        line.sendall(visitor.head("POST", "/admin/login/", *of_form) + form)
                    case _:  # before its body is whole
                        line.sendall(visitor.head("POST", "/admin/login/", *of_form) + form[:9])
        most = before + STILL_OPENED * each
        assert comes_down_to(count, most) <= most
    # The aborted ones that wait for their turn are of the same address: for a moment it may be told
    # to come back. A thread that was lost would never come back.
    deadline = time.monotonic() + PATIENCE
    visitor.statuses.clear()
    while visitor.statuses[200] < 2 * PER_ADDRESS and time.monotonic() < deadline:
        visitor.ask("/admin/")
    assert set(visitor.statuses) <= {200, 503}
    assert visitor.statuses[200] == 2 * PER_ADDRESS


class _Peak:
    """The most that was held while the block ran, as far as looking again and again shows."""

    def __init__(self, count: Callable[[], int]) -> None:
        self.most = 0
        self._count = count
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(PATIENCE)

    def _look(self) -> None:
        while not self._over.wait(0.02):
            self.most = max(self.most, self._count())


@pytest.fixture(params=["daphne", "runserver"])
def other_server(request: pytest.FixtureRequest) -> Server:
    started: Server = request.getfixturevalue(request.param)
    return started


def test_other_asgi_servers_leak_no_file(other_server: Server, visit: Visit) -> None:
    server = other_server
    visitors = [visit(server, signed_in=True) for _ in range(2)]
    visitors += [visit(server) for _ in range(2)]
    paths = ["/admin/", "/admin/calls/", "/t/x/done/made-up", *NOWHERE]
    with gauge(server) as (count, each, _):
        asked_by(visitors, list(islice(cycle(paths), 40)))
        before = count()
        asked_by(visitors, list(islice(cycle(paths), 80)))
        most = before + STILL_OPENED * each
        assert comes_down_to(count, most) <= most
    statuses = sum((visitor.statuses for visitor in visitors), Counter[int]())
    assert statuses.total() == 120
    assert {200, 302, 404} == set(statuses)
