"""A process that stops, with and without notice: what happens to its calls and listen streams."""

import http.client
import json
import os
import signal
import sqlite3
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from tests.e2e import raw
from tests.e2e.processes import ROOT, Server, serving

PATIENCE = 60
CALLERS = 8
TOKEN = "a-token-for-monitoring"
STEP = b"notifications/progress"
STOPPED = "The server shut down before the call was complete"


def test_readyz_reports_the_drain_while_requests_are_still_served(home: Path) -> None:
    settings = {"MCPHOST_NOTICE_SECONDS": "3600", "MCPHOST_METRICS_TOKEN": TOKEN}
    with serving("uvicorn", home, signal.SIGINT, **settings) as server:
        os.kill(server.pid, signal.SIGTERM)
        while (
            reply := raw.send(server, "GET", "/readyz", Authorization=f"Bearer {TOKEN}")
        ).status == 200:
            pass
        assert reply.status == 503
        assert reply.json["problems"] == {"drain": "the server is about to stop"}
        assert raw.send(server, "GET", "/healthz").status == 200
        echo = raw.call("echo", {"text": "a"})
        while (answer := raw.post(server, echo, server.token)).headers.get("connection") != "close":
            assert answer.status == 200
        assert answer.status == 200
    # A second signal ended it, with status 0, though an hour had not passed.


STUCK = """

@tool(title="Stuck")
async def stuck(ctx: Context) -> str:
    \"\"\"Blocks a thread of asyncio's own, and will not be cancelled.\"\"\"
    ctx.progress(1, 2)
    while True:
        try:
            await asyncio.to_thread(time.sleep, 600)
        except asyncio.CancelledError:
            continue
"""


def test_a_draining_process_ends_every_call_and_stream_with_a_response(home: Path) -> None:
    """A call that does not end in time is cancelled, told so and recorded; a listener hears that it is over; no
    connection that was accepted goes without its answer. A tool that holds on to the process does not keep it."""
    tools = home.parent / "tools"
    tools.mkdir()
    (tools / "demo.py").write_text((ROOT / "tools" / "demo.py").read_text() + STUCK)
    slow = raw.call("countdown", {"start": 60, "seconds": 2}, progressToken="steps")
    stuck = raw.call("stuck", {}, progressToken="steps")
    listen = raw.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    ways = {"MCPHOST_TOOLS_PATH": str(tools), "MCPHOST_DRAIN_SECONDS": "0.2"}
    with (
        serving("uvicorn", home, **ways) as server,
        ThreadPoolExecutor(CALLERS) as pool,
        raw.opened(server, slow) as line,
        raw.opened(server, listen) as listening,
        raw.opened(server, stuck) as held,
    ):
        raw.read_until(line, STEP)
        raw.read_until(listening, b"notifications/subscriptions/acknowledged")
        raw.read_until(held, STEP)
        answered = threading.Event()
        calling = [
            pool.submit(_call_until_nobody_listens, server, answered) for _ in range(CALLERS)
        ]
        assert answered.wait(PATIENCE)
        os.kill(server.pid, signal.SIGTERM)
        told, heard = raw.read_to_the_end(line), raw.read_to_the_end(listening)
        statuses = Counter(status for each in calling for status in each.result(PATIENCE))
    # It has ended with status 0, and was not killed.
    assert STOPPED.encode() in told
    assert b'"resultType":"complete"' in heard
    assert told.endswith(b"0\r\n\r\n"), "the stream has its end"
    assert heard.endswith(b"0\r\n\r\n"), "the stream has its end"
    assert set(statuses) == {200}, statuses
    with closing(sqlite3.connect(home / "db.sqlite3")) as database:
        query = (
            "SELECT outcome, reason FROM audit_entry "
            "WHERE action = 'round.finished' AND target = 'countdown'"
        )
        assert database.execute(query).fetchall() == [("cancelled", STOPPED)]


def _call_until_nobody_listens(server: Server, answered: threading.Event) -> list[object]:
    """What became of calls, each on a connection of its own, until one is refused."""
    message = raw.call("echo", {"text": "a"})
    body, fields = json.dumps(message), raw.headers(message, server.token)
    statuses: list[object] = []
    while True:
        with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)) as to:
            try:
                to.connect()
            except ConnectionError:
                return statuses
            try:
                to.request("POST", "/t/demo/mcp", body, fields)
                response = to.getresponse()
                response.read()
                statuses.append(response.status)
                answered.set()
            except (OSError, http.client.HTTPException) as error:
                statuses.append(repr(error))
