"""What one caller can make the server keep for it: sessions, subscriptions, GET streams.

One request after the other is tested in `tests/transport/legacy`. Each test attacks from addresses or with
credentials of its own, over each database. The server's limits are smaller than by default, so that a flood
reaches them soon.
"""

import http.client
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import psycopg
import pytest

from tests.attacks.conftest import CHANGES, SESSIONS, STREAMS
from tests.attacks.test_sessions import database_of
from tests.e2e.processes import Server, manage

PATIENCE = 30.0
REVISION = "2025-11-25"
CLIENT = {
    "protocolVersion": REVISION,
    "capabilities": {"elicitation": {"form": {}}},
    "clientInfo": {"name": "flood", "version": "1"},
}

_ids = count(1)
_addresses = (f"198.51.{number // 250}.{number % 250 + 1}" for number in count())


@dataclass(frozen=True)
class Answer:
    """A response, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def error(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)["error"]
        return found

    @property
    def refused(self) -> bool:
        """Whether it is an error over a limit: with status 200, and the time to come back."""
        if self.status != 200 or b'"error"' not in self.body:
            return False
        assert self.error["code"] == -32603
        assert 0 < self.error["data"]["retryAfter"] <= 60
        return True


@dataclass(frozen=True)
class Caller:
    """A client at one address, without a credential unless it has a `token`. `session` is the session of
    its next request."""

    server: Server
    address: str = ""
    token: str = ""
    tenant: str = "conformance"
    session: str = ""

    @contextmanager
    def line(self) -> Iterator[http.client.HTTPConnection]:
        made = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=PATIENCE)
        with closing(made):
            yield made

    def send(
        self, line: http.client.HTTPConnection, verb: str, message: Any = None
    ) -> http.client.HTTPResponse:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "X-Forwarded-For": self.address,
            "Authorization": f"Bearer {self.token}" if self.token else "",
            "MCP-Protocol-Version": REVISION if self.session else "",
            "Mcp-Session-Id": self.session,
        }
        body = None if message is None else json.dumps(message)
        line.request(verb, f"/t/{self.tenant}/mcp", body, {k: v for k, v in headers.items() if v})
        return line.getresponse()

    def do(
        self, verb: str, message: Any = None, line: http.client.HTTPConnection | None = None
    ) -> Answer:
        with ExitStack() as lines:
            response = self.send(line or lines.enter_context(self.line()), verb, message)
            headers = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, headers, response.read())

    def ask(
        self, method: str, line: http.client.HTTPConnection | None = None, **params: Any
    ) -> Answer:
        return self.do(
            "POST", {"jsonrpc": "2.0", "id": next(_ids), "method": method, "params": params}, line
        )

    def begin(self, line: http.client.HTTPConnection | None = None) -> "Caller | Answer":
        """The caller in a new session, or the refusal."""
        answer = self.ask("initialize", line, **CLIENT)
        if "mcp-session-id" in answer.headers:
            return replace(self, session=answer.headers["mcp-session-id"])
        assert answer.refused, answer
        return answer

    def begun(self) -> "Caller":
        begun = self.begin()
        assert isinstance(begun, Caller), begun
        return begun

    def lives(self) -> bool:
        answer = self.ask("ping")
        assert answer.status in (200, 404), answer
        return answer.status == 200

    def listen(self, line: http.client.HTTPConnection) -> http.client.HTTPResponse:
        """Open a GET stream that stands: its first bytes have come, or it was refused."""
        response = self.send(line, "GET")
        if response.status == 200:
            response.readline()
        return response


def stranger(server: Server) -> Caller:
    """A caller without a credential, at an address that was never used."""
    return Caller(server, next(_addresses))


@pytest.fixture
def named(limited: Server) -> Caller:
    """A caller of the demo tenant with a token of its own."""
    command = ("token", "issue", "--tenant", "demo", "--owner", "admin", "--name", "attacker")
    done = manage(limited.home, *command, env=database_of(limited))
    assert done.returncode == 0, done.stderr
    found = re.search(r"mcph_\w+", done.stdout)
    assert found, done.stdout
    return Caller(limited, next(_addresses), found[0], "demo")


def number_of(server: Server, statement: str) -> int:
    """One number out of the server's database."""
    url = database_of(server).get("DATABASE_URL")
    if url is None:
        with closing(sqlite3.connect(server.home / "db.sqlite3", timeout=PATIENCE)) as link:
            return int(link.execute(statement).fetchone()[0])
    with closing(psycopg.connect(url.replace("postgres:", "postgresql:", 1))) as link:
        row = link.execute(statement.encode()).fetchone()
        assert row is not None
        return int(row[0])


def sessions(server: Server) -> int:
    """How many have begun, those that ended lately among them."""
    return number_of(server, "SELECT count(*) FROM calls_session")


def going_on(server: Server) -> int:
    return number_of(server, "SELECT count(*) FROM calls_session WHERE ended_at IS NULL")


def changes(server: Server) -> int:
    """How much the feed has told of in all."""
    return number_of(server, "SELECT value FROM feed_counter")


def flood(
    caller: Caller, times: int, what: Callable[[Caller, http.client.HTTPConnection], Any]
) -> list[Any]:
    """Do something so often as one caller, on eight connections at once; what came of each."""
    attackers = 8

    def attack(number: int) -> list[Any]:
        with caller.line() as line:
            return [what(caller, line) for _ in range(number, times, attackers)]

    with ThreadPoolExecutor(attackers) as pool:
        return [each for some in pool.map(attack, range(attackers)) for each in some]


def begin(caller: Caller, line: http.client.HTTPConnection) -> Caller | Answer:
    return caller.begin(line)


# --- sessions ---


def test_a_thousand_sessions_asked_for_are_few_that_begin_and_fewer_that_stay(
    limited: Server,
) -> None:
    before, there = sessions(limited), going_on(limited)
    outcomes = flood(stranger(limited), 1000, begin)
    begun = [each for each in outcomes if isinstance(each, Caller)]
    assert len(begun) == CHANGES
    assert sessions(limited) - before <= CHANGES
    assert going_on(limited) - there == SESSIONS
    assert sum(each.lives() for each in begun) == SESSIONS


def test_forty_at_once_have_no_more_than_the_limit(limited: Server) -> None:
    caller = stranger(limited)
    with ThreadPoolExecutor(40) as pool:
        begun = list(pool.map(lambda _: caller.begun(), range(40)))
    assert sum(each.lives() for each in begun) == SESSIONS


def test_one_callers_flood_ends_nothing_of_others(limited: Server, named: Caller) -> None:
    attacker = stranger(limited)
    others = [
        stranger(limited).begun(),
        named.begun(),
        replace(named, token=limited.token).begun(),
        replace(named, address=attacker.address).begun(),
    ]
    victim = stranger(limited).begun()
    with victim.line() as line:
        stream = victim.listen(line)
        flood(attacker, 300, begin)
        assert all(each.lives() for each in (*others, victim))
        assert stream.readline()
    assert isinstance(stranger(limited).begin(), Caller)


def test_a_session_can_be_ended_however_many_were_begun(limited: Server) -> None:
    begun = [
        each for each in flood(stranger(limited), CHANGES + 1, begin) if isinstance(each, Caller)
    ]
    ended = Counter(each.do("DELETE").status for each in begun)
    assert ended == {204: SESSIONS, 404: CHANGES - SESSIONS}


# --- subscriptions ---


def uri(number: int) -> str:
    return f"test://template/{number}/data"


def test_subscribing_again_and_again_writes_so_much_a_minute(limited: Server) -> None:
    session = stranger(limited).begun()
    before = changes(limited)

    def change(caller: Caller, line: http.client.HTTPConnection) -> list[Answer]:
        verbs = ("resources/subscribe", "resources/unsubscribe")
        return [caller.ask(verb, line, uri=uri(0)) for verb in verbs]

    answers = [each for pair in flood(session, 300, change) for each in pair]
    assert sum(not each.refused for each in answers) == CHANGES - 1
    assert changes(limited) - before < CHANGES
    assert session.lives()


def test_what_is_subscribed_to_already_is_told_to_no_process(limited: Server) -> None:
    session = stranger(limited).begun()
    session.ask("resources/subscribe", uri=uri(0))
    before = changes(limited)
    for _ in range(20):
        assert session.ask("resources/subscribe", uri=uri(0)).status == 200
    assert changes(limited) == before


# --- GET streams ---


def test_opening_and_closing_streams_writes_so_much_a_minute(limited: Server) -> None:
    session = stranger(limited).begun()
    before = changes(limited)
    statuses: Counter[int] = Counter()
    for _ in range(CHANGES + 30):
        with session.line() as line:
            response = session.listen(line)
            statuses[response.status] += 1
            if response.status == 429:
                assert 0 < int(response.headers["retry-after"]) <= 60
    assert statuses[200] <= CHANGES - 1
    assert set(statuses) == {200, 429}
    assert changes(limited) - before <= 3 * CHANGES  # opened, closed, and closed for a newer one
    assert session.lives()


def pings(stream: http.client.HTTPResponse, number: int) -> list[str]:
    """The ids of so many pings on a stream."""
    found: list[str] = []
    while len(found) < number:
        line = stream.readline()
        assert line, "the stream ended first"
        if line.startswith(b"data:"):
            message = json.loads(line.removeprefix(b"data:"))
            assert message["method"] == "ping"
            found.append(message["id"])
    return found


# --- several processes ---


def test_all_processes_share_the_limit_of_sessions(two_limited: tuple[Server, Server]) -> None:
    address = next(_addresses)
    callers = [Caller(server, address) for server in two_limited]
    with ThreadPoolExecutor(40) as pool:
        begun = list(pool.map(lambda number: callers[number % 2].begun(), range(40)))
    assert sum(each.lives() for each in begun) == SESSIONS


def test_a_stream_on_another_process_keeps_a_session_and_is_counted(
    two_limited: tuple[Server, Server],
) -> None:
    one, other = (Caller(server, "192.0.2.77") for server in two_limited)
    kept = one.begun()
    there = replace(kept, server=other.server)
    with ExitStack() as lines:
        streams = [kept.listen(lines.enter_context(kept.line())) for _ in range(STREAMS)]
        for _ in range(SESSIONS + 5):
            other.begun()
        assert there.lives()
        newest = there.listen(lines.enter_context(there.line()))
        assert newest.status == 200
        assert streams[0].read() is not None  # to its end
        assert not set(pings(streams[1], 2)) & set(pings(newest, 2))
