"""Forged or oversized headers are refused or ignored, and not kept in memory or in the log."""

import json
import re
from pathlib import Path

import pytest

from tests.attacks.test_quotas import number_of
from tests.e2e import raw
from tests.e2e.processes import Server

MESSAGE = raw.request("tools/list", {})
KIB = 1024


def head(server: Server, *more: str, token: bool = True) -> bytes:
    fields = raw.headers(MESSAGE, server.token if token else None)
    lines = [f"{name}: {value}" for name, value in {"Host": "localhost", **fields}.items()]
    return "\r\n".join(["POST /t/demo/mcp HTTP/1.1", *lines, *more, "", ""]).encode()


def said(server: Server, request: bytes) -> bytes:
    with raw.socket.create_connection(("127.0.0.1", server.port), timeout=raw.PATIENCE) as line:
        line.sendall(request)
        return raw.read_until(line, b"\r\n\r\n")


def memory(server: Server) -> int:
    status = Path(f"/proc/{server.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found
    return int(found[1]) * KIB


def chunked(server: Server, *trailers: str) -> bytes:
    body = json.dumps(MESSAGE).encode()
    begun = head(server, "Transfer-Encoding: chunked", token=False)
    end = "".join(f"{trailer}\r\n" for trailer in trailers).encode()
    return begun + b"%x\r\n%s\r\n0\r\n%s\r\n" % (len(body), body, end)


@pytest.fixture(params=["server", "daphne"])
def either(request: pytest.FixtureRequest) -> Server:
    started: Server = request.getfixturevalue(request.param)
    return started


def test_a_credential_in_a_trailer_is_ignored(either: Server) -> None:
    trailer = f"Authorization: Bearer {either.token}"
    assert b" 401 " in said(either, chunked(either, trailer))


def test_an_address_in_a_trailer_does_not_replace_the_address_from_the_proxy(
    limited: Server,
) -> None:
    begun = raw.call("echo", {"text": "from where"})
    body = json.dumps(begun).encode()
    fields = {**raw.headers(begun, limited.token), "X-Forwarded-For": "192.0.2.7"}
    lines = [f"{name}: {value}" for name, value in {"Host": "localhost", **fields}.items()]
    sent = "\r\n".join(
        ["POST /t/demo/mcp HTTP/1.1", *lines, "Transfer-Encoding: chunked", "", ""]
    ).encode()
    sent += b"%x\r\n%s\r\n0\r\nX-Forwarded-For: 198.51.100.9\r\n\r\n" % (len(body), body)
    assert b" 200 " in said(limited, sent)
    told = "SELECT count(*) FROM audit_entry WHERE target = 'echo' AND source = '{}'"
    assert number_of(limited, told.format("192.0.2.7")) > 0
    assert number_of(limited, told.format("198.51.100.9")) == 0


def test_long_headers_of_many_requests_are_not_kept_in_memory(sqlite_server: Server) -> None:
    def flood(first: int) -> None:
        for number in range(first, first + 260):
            long = f"{number:06}" + "a" * 60 * KIB
            for name in ("Host", "Accept", "Content-Type"):
                fields = {**raw.headers(MESSAGE, None), name: f"{long};{name}"}
                reply = raw.exchange(sqlite_server, "POST", "/t/demo/mcp", b"{}", fields)
                assert reply.status in (403, 406, 415)

    flood(0)
    before = memory(sqlite_server)
    flood(1000)
    assert memory(sqlite_server) - before < 10 * KIB * KIB, (
        "a cache of 256 such values has over 15 MiB"
    )


def test_repeated_headers_of_many_requests_are_not_kept_in_memory(sqlite_server: Server) -> None:
    """Each request is let in, so what its headers decide could be kept for the next one."""
    body = json.dumps(MESSAGE).encode()

    def flood(first: int) -> None:
        for number in range(first, first + 200):
            many = [f"Accept: x/{number}", *["Accept:"] * 1900]
            request = head(sqlite_server, *many, f"Content-Length: {len(body)}") + body
            assert b" 200 " in said(sqlite_server, request)

    flood(0)
    before = memory(sqlite_server)
    flood(1000)
    assert memory(sqlite_server) - before < 10 * KIB * KIB, "200 such heads have over 20 MiB"


def test_an_invented_header_value_of_a_client_is_not_logged(sqlite_server: Server) -> None:
    fields = {**raw.headers(MESSAGE, sqlite_server.token), "Mcp-Method": "made-up-canary"}
    body = json.dumps(MESSAGE).encode()
    reply = raw.exchange(sqlite_server, "POST", "/t/demo/mcp", body, fields)
    assert "made-up-canary" in reply.message["error"]["message"]
    assert "canary" not in sqlite_server.log.read_text()
