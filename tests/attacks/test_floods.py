"""Slow clients and floods: meanwhile a well-behaved client's calls all succeed.

Each flood lasts FLOOD_SECONDS. What is asserted is what the well-behaved client gets, and that the
server is ready and has let go of the flood afterwards; never how fast anything was.
"""

import http.client
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from urllib.parse import urlencode

import pytest

from mcphost.identity import tokens
from tests.e2e import raw
from tests.e2e.processes import Server

FLOOD_SECONDS = float(os.environ.get("FLOOD_SECONDS") or 10)
CONNECTIONS = 150
ATTACKERS = 6
ATTACKERS_ADDRESS = "127.8.0.1"
"""Of those who try names and tokens: others may sign in from theirs afterwards."""
DRIP_SECONDS = 0.5
PUBLIC = "/t/conformance/mcp"
ECHO = raw.call("echo", {"text": "still here"})
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "flood", "version": "1"},
    },
}
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

Attack = Callable[[Server, threading.Event], None]


def connection(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=raw.PATIENCE)


def dripping(server: Server, over: threading.Event, beginning: bytes, drop: bytes) -> None:
    """Keep connections that send a beginning and then a little at a time; open new ones for those that
    the server closes."""
    lines: list[socket.socket] = []
    try:
        while not over.wait(DRIP_SECONDS):
            while len(lines) < CONNECTIONS // ATTACKERS:
                line = connection(server)
                line.sendall(beginning)
                lines.append(line)
            lines = [line for line in lines if _sent(line, drop)]
    finally:
        for line in lines:
            line.close()


def _sent(line: socket.socket, drop: bytes) -> bool:
    try:
        line.sendall(drop)
    except OSError:
        line.close()
        return False
    return True


def half_sent_headers(server: Server, over: threading.Event) -> None:
    dripping(server, over, b"POST /t/demo/mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", b"a")


def half_sent_forms(server: Server, over: threading.Event) -> None:
    head = (
        b"POST /admin/login/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n"
        b"Content-Type: application/x-www-form-urlencoded\r\n\r\nusername="
    )
    dripping(server, over, head, b"a")


def unread_answers(server: Server, over: threading.Event) -> None:
    """Many lists asked for on one connection after the other, of which nothing is ever read."""
    message = raw.request("tools/list", {})
    body = json.dumps(message).encode()
    fields = {**raw.headers(message, None), "Content-Length": str(len(body))}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    head = f"POST {PUBLIC} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n"
    opened: list[socket.socket] = []
    try:
        while not over.wait(DRIP_SECONDS):
            line = connection(server)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            line.settimeout(DRIP_SECONDS)
            with suppress(OSError):
                line.sendall((head.encode() + body) * 200)
            opened.append(line)
    finally:
        for line in opened:
            line.close()


def _asking(
    server: Server, over: threading.Event, ask: Callable[[http.client.HTTPConnection], None]
) -> None:
    while not over.is_set():
        made = http.client.HTTPConnection(
            "127.0.0.1", server.port, timeout=5, source_address=(ATTACKERS_ADDRESS, 0)
        )
        with suppress(OSError, http.client.HTTPException), closing(made) as line:
            while not over.is_set():
                ask(line)


def many_sessions(server: Server, over: threading.Event) -> None:
    body = json.dumps(INITIALIZE)

    def ask(line: http.client.HTTPConnection) -> None:
        line.request("POST", PUBLIC, body, JSON)
        line.getresponse().read()

    _asking(server, over, ask)


def many_wrong_tokens(server: Server, over: threading.Event) -> None:
    def ask(line: http.client.HTTPConnection) -> None:
        wrong = raw.headers(ECHO, tokens.new(secrets.token_bytes))
        line.request("POST", "/t/demo/mcp", json.dumps(ECHO), wrong)
        assert line.getresponse().read() is not None

    _asking(server, over, ask)


def many_sign_ins(server: Server, over: threading.Event) -> None:
    token = secrets.token_hex(16)
    fields = {
        "Cookie": f"mcphost_csrf={token}",
        "Content-Type": "application/x-www-form-urlencoded",
    }

    def ask(line: http.client.HTTPConnection) -> None:
        form = {"username": secrets.token_hex(4), "password": "x", "csrfmiddlewaretoken": token}
        line.request("POST", "/admin/login/", urlencode(form), fields)
        line.getresponse().read()

    _asking(server, over, ask)


OF_CONNECTIONS: tuple[Attack, ...] = (
    half_sent_headers,
    half_sent_forms,
    unread_answers,
)
"""They reach no database."""
OF_REQUESTS: tuple[Attack, ...] = (many_sessions, many_wrong_tokens, many_sign_ins)


@contextmanager
def flooding(server: Server, attack: Attack) -> Iterator[None]:
    over = threading.Event()
    with ThreadPoolExecutor(ATTACKERS) as attackers:
        running = [attackers.submit(attack, server, over) for _ in range(ATTACKERS)]
        try:
            yield
        finally:
            over.set()
            for one in running:
                one.result(raw.PATIENCE * 2)


@pytest.mark.parametrize("attack", OF_CONNECTIONS, ids=lambda attack: attack.__name__)
def test_calls_succeed_while_slow_clients_hold_connections(
    sqlite_server: Server, attack: Attack
) -> None:
    all_calls_succeed(sqlite_server, attack)


@pytest.mark.parametrize("attack", OF_REQUESTS, ids=lambda attack: attack.__name__)
def test_calls_succeed_during_a_flood_of_requests(sqlite_server: Server, attack: Attack) -> None:
    all_calls_succeed(sqlite_server, attack)


def all_calls_succeed(server: Server, attack: Attack) -> None:
    statuses: list[int] = []
    with flooding(server, attack):
        ends = time.monotonic() + FLOOD_SECONDS
        while time.monotonic() < ends:
            reply = raw.post(server, ECHO, server.token)
            statuses.append(reply.status)
            assert reply.status == 200, reply.body
            assert reply.message["result"]["content"][0]["text"] == "still here"
    assert statuses
    assert raw.send(server, "GET", "/readyz").status == 200
