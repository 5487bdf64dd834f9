"""What a server promises its operators: limits, records that outlive it, words that work."""

import os
import shlex
import signal
import socket
import sqlite3
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e import raw
from tests.e2e.processes import Server, serving

PATIENCE = 30


def test_headers_that_do_not_come_close_the_connection(home: Path) -> None:
    with serving("uvicorn", home, MCPHOST_HEADER_SECONDS="0.3") as server:
        for begun in (b"", b"POST /t/demo/mcp HTTP/1.1\r\nHost: loc"):
            with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as connection:
                connection.sendall(begun)
                connection.settimeout(PATIENCE)
                assert connection.recv(1) == b""
        assert raw.post(server, raw.call("echo", {"text": "a"}), server.token).status == 200


def _killed_while_calling(home: Path) -> list[str]:
    """Call a tool that changes something until the server dies; the texts that were answered."""
    answered: list[str] = []

    def calls(server: Server, worker: int) -> None:
        for number in range(200):
            text = f"{worker}-{number}"
            try:
                body = raw.call("send_note", {"recipient": "Ada", "note": text})
                reply = raw.post(server, body, server.token)
            except OSError:
                return
            if reply.status == 200:
                assert "isError" not in reply.json["result"]
                answered.append(text)
            if len(answered) == 100:
                os.kill(server.pid, signal.SIGKILL)

    with (
        pytest.raises(AssertionError, match="status -9"),
        serving("uvicorn", home) as server,
        ThreadPoolExecutor(4) as pool,
    ):
        for future in [pool.submit(calls, server, worker) for worker in range(4)]:
            future.result(PATIENCE * 2)
    return answered


def test_every_answered_call_is_recorded_though_the_server_was_killed(home: Path) -> None:
    answered = _killed_while_calling(home)
    assert len(answered) >= 100
    with closing(sqlite3.connect(home / "db.sqlite3")) as database:
        query = (
            "SELECT action, count(*) FROM audit_entry WHERE target = 'send_note' "
            "AND method = 'tools/call' GROUP BY action"
        )
        counts = dict(database.execute(query).fetchall())
    assert counts["round.finished"] >= len(answered)
    assert counts["round.started"] >= counts["round.finished"]


def test_the_python_client_that_is_printed_runs_as_it_is(server: Server) -> None:
    printed = server.output.read_text()
    program = textwrap.dedent(printed[printed.index("  import asyncio") :])
    ran = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=PATIENCE * 2,
        check=False,
    )
    assert "countdown" in ran.stdout.split(), ran.stderr


def test_the_line_for_claude_code_holds_what_it_needs(server: Server) -> None:
    line = next(line for line in server.output.read_text().splitlines() if "claude mcp add" in line)
    words = shlex.split(line)
    assert server.url in words
    assert f"Authorization: Bearer {server.token}" in words
