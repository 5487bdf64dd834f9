"""A process leaves, and nobody notices: real processes, behind a proxy that honours `/readyz`."""

import http.client
import json
import os
import signal
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e import nodes, raw
from tests.e2e.load import CALLS, WORKERS, loading
from tests.e2e.nodes import Service
from tests.e2e.processes import ROOT, Server, serving

PATIENCE = 60
TOKEN = "a-token-for-monitoring"
STEP = b"notifications/progress"
STOPPED = "The server shut down before the call was complete"


@pytest.fixture
def service(machine: None, tmp_path: Path) -> Iterator[Service]:
    with nodes.service(tmp_path, homes=1, MCPHOST_NOTICE_SECONDS="1") as two:
        yield two


def test_a_rolling_restart_under_load_fails_not_one_call(service: Service) -> None:
    proxy, first, second, server = service.proxy, service.first, service.second, service.server
    with loading(server) as load, ThreadPoolExecutor(1) as pool:
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
    assert set(load.answers) == {name for name, _ in CALLS}
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


def test_a_tool_that_holds_on_to_the_process_does_not_keep_it(home: Path) -> None:
    tools = home.parent / "tools"
    tools.mkdir()
    (tools / "demo.py").write_text((ROOT / "tools" / "demo.py").read_text() + STUCK)
    hung = raw.call("stuck", {}, progressToken="steps")
    ways = {"MCPHOST_TOOLS_PATH": str(tools), "MCPHOST_DRAIN_SECONDS": "0.2"}
    with serving("uvicorn", home, **ways) as server, raw.opened(server, hung) as line:
        raw.read_until(line, STEP)
    # It has ended with status 0, and was not killed.


def test_a_listener_hears_that_it_is_over(home: Path) -> None:
    listen = raw.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    with serving("uvicorn", home) as server, raw.opened(server, listen) as line:
        raw.read_until(line, b"notifications/subscriptions/acknowledged")
        os.kill(server.pid, signal.SIGTERM)
        events = raw.read_to_the_end(line)
    assert b'"resultType":"complete"' in events
    assert events.endswith(b"0\r\n\r\n"), "the stream has its end"


def test_no_connection_that_was_accepted_goes_without_its_answer(home: Path) -> None:
    with serving("uvicorn", home) as server, ThreadPoolExecutor(WORKERS * 2) as pool:
        answered = threading.Event()
        calling = [
            pool.submit(_call_until_nobody_listens, server, answered) for _ in range(WORKERS * 2)
        ]
        assert answered.wait(PATIENCE)
        os.kill(server.pid, signal.SIGTERM)
        statuses = Counter(status for each in calling for status in each.result(PATIENCE))
    assert set(statuses) == {200}, statuses


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
