"""How many sessions one caller can open. Sequential requests are tested in `tests/transport/legacy`.

Each test attacks from addresses of its own. The server's limits are smaller than by default.
"""

import http.client
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import psycopg

from tests.attacks.conftest import CHANGES, SESSIONS
from tests.attacks.test_sessions import database_of
from tests.e2e import raw
from tests.e2e.processes import Server

REVISION = "2025-11-25"
CLIENT = {
    "protocolVersion": REVISION,
    "capabilities": {"elicitation": {"form": {}}},
    "clientInfo": {"name": "flood", "version": "1"},
}
ATTACKERS = 8

_addresses = (f"198.51.{number // 250}.{number % 250 + 1}" for number in count())


@dataclass(frozen=True)
class Caller:
    """A client at one address, without a credential unless it has a `token`."""

    server: Server
    address: str = ""
    token: str = ""
    tenant: str = "conformance"
    session: str = ""

    @contextmanager
    def line(self) -> Iterator[http.client.HTTPConnection]:
        made = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=raw.PATIENCE)
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

    def ask(self, line: http.client.HTTPConnection, method: str, **params: Any) -> raw.Reply:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        response = self.send(line, "POST", message)
        headers = {name.lower(): value for name, value in response.getheaders()}
        return raw.Reply(response.status, headers, response.read())

    def begin(self, line: http.client.HTTPConnection) -> "Caller | None":
        reply = self.ask(line, "initialize", **CLIENT)
        if "mcp-session-id" in reply.headers:
            return replace(self, session=reply.headers["mcp-session-id"])
        error = reply.json["error"]
        assert (reply.status, error["code"]) == (200, -32603)
        assert 0 < error["data"]["retryAfter"] <= 60
        return None

    def begun(self) -> "Caller":
        with self.line() as line:
            begun = self.begin(line)
        assert begun
        return begun

    def lives(self) -> bool:
        with self.line() as line:
            status = self.ask(line, "ping").status
        assert status in (200, 404)
        return status == 200


def stranger(server: Server) -> Caller:
    return Caller(server, next(_addresses))


def number_of(server: Server, statement: str) -> int:
    url = database_of(server)["DATABASE_URL"].replace("postgres:", "postgresql:", 1)
    with closing(psycopg.connect(url)) as link:
        row = link.execute(statement.encode()).fetchone()
        assert row is not None
        return int(row[0])


def flood(caller: Caller, times: int) -> list[Caller]:
    def attack(number: int) -> list[Caller | None]:
        with caller.line() as line:
            return [caller.begin(line) for _ in range(number, times, ATTACKERS)]

    with ThreadPoolExecutor(ATTACKERS) as pool:
        return [each for some in pool.map(attack, range(ATTACKERS)) for each in some if each]


def test_a_flood_of_initialize_requests_stays_within_the_session_limits(
    limited: Server,
) -> None:
    every, going_on = (
        f"SELECT count(*) FROM calls_session {where}" for where in ("", "WHERE ended_at IS NULL")
    )
    before, there = number_of(limited, every), number_of(limited, going_on)
    begun = flood(stranger(limited), 300)
    assert len(begun) == CHANGES
    assert number_of(limited, every) - before <= CHANGES
    assert number_of(limited, going_on) - there == SESSIONS
    assert sum(each.lives() for each in begun) == SESSIONS


def test_a_flood_of_one_caller_ends_no_session_or_stream_of_others(limited: Server) -> None:
    attacker = stranger(limited)
    others = [
        stranger(limited).begun(),
        Caller(limited, next(_addresses), limited.token, "demo").begun(),
        Caller(limited, attacker.address, limited.token, "demo").begun(),
    ]
    victim = stranger(limited).begun()
    with victim.line() as line:
        stream = victim.send(line, "GET")
        assert stream.readline()
        flood(attacker, 200)
        assert all(each.lives() for each in (*others, victim))
        assert stream.readline()
    stranger(limited).begun()


def test_all_processes_share_the_session_limit(two_limited: tuple[Server, Server]) -> None:
    address = next(_addresses)
    callers = [Caller(server, address) for server in two_limited]
    with ThreadPoolExecutor(40) as pool:
        begun = list(pool.map(lambda number: callers[number % 2].begun(), range(40)))
    assert sum(each.lives() for each in begun) == SESSIONS
