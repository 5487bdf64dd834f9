"""A member disconnects a client: what it has open ends in every process, and it is told to sign in again."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.e2e import raw, raw_sessions
from tests.e2e.desktops import admin_of
from tests.e2e.handmade_calls import CAPABLE, at, beside_effects, wait_until
from tests.e2e.nodes import Node, Service
from tests.e2e.oauth_client import HandmadeClient
from tests.e2e.processes import Server
from tests.e2e.test_older_clients import NEWEST
from tests.e2e.test_task_workers import ABLE

LISTEN = raw.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
LAST_CHUNK = b"\r\n0\r\n\r\n"
APPS = "/admin/t/demo/connected-apps/"


@pytest.fixture
def client(two_nodes: Service) -> HandmadeClient:
    connected = HandmadeClient(two_nodes.server, name="Night owl")
    connected.connect()
    return connected


def seen_by(client: HandmadeClient, service: Service, process: Node) -> Server:
    """Return a process as the client sees it, with its access token."""
    return replace(at(service, process), access_token=client.tokens["access_token"])


@contextmanager
def paused(service: Service) -> Iterator[Path]:
    """Let steps of tasks wait."""
    file = beside_effects(service, ".pause")
    file.touch()
    try:
        yield file
    finally:
        file.unlink()


def disconnect(service: Service, name: str) -> None:
    """Disconnect the client of that name, as an owner, at the first process."""
    admin = admin_of(at(service, service.first))
    (row,) = [row for row in admin.get(APPS).split("<tr ")[1:] if name in row]
    connection = row.partition('id="connection-')[2].partition('"')[0]
    admin.post(f"{APPS}{connection}/disconnect/")


def state_of(service: Service, task: str) -> str:
    query = "SELECT state FROM tasks_task WHERE id = %s"
    with psycopg.connect(service.settings["DATABASE_URL"]) as link:
        row = link.execute(query, [task]).fetchone()
    assert row
    return str(row[0])


def begin_task(server: Server) -> str:
    call = raw.call("steps_in_a_process", {}, **ABLE)
    reply = raw.post(server, call, server.token)
    assert reply.status == 200, reply.body
    task: str = reply.message["result"]["taskId"]
    return task


def test_all_that_a_disconnected_client_has_open_ends_in_both_processes(
    two_nodes: Service, client: HandmadeClient
) -> None:
    processes = [
        seen_by(client, two_nodes, process) for process in (two_nodes.first, two_nodes.second)
    ]
    running = raw.call("countdown", {"start": 60, "seconds": 2}, progressToken="steps")
    with ExitStack() as opened:
        opened.enter_context(paused(two_nodes))
        listening, calls, streams, tasks = [], [], [], []
        for server in processes:
            listening.append(opened.enter_context(raw.opened(server, LISTEN)))
            raw.read_until(listening[-1], b"notifications/subscriptions/acknowledged")
            calls.append(opened.enter_context(raw.opened(server, running)))
            raw.read_until(calls[-1], b"notifications/progress")
            session = raw_sessions.begin(server, NEWEST, elicitation={})
            streams.append(opened.enter_context(session.stream()))
            asking = raw_sessions.calling("deploy", service="shop", version="v2")
            streams.append(opened.enter_context(session.stream(asking)))
            while (event := streams[-1].next()) is not None and "elicitation" not in str(event):
                pass
            tasks.append(begin_task(server))
        question = raw.post(
            processes[0],
            raw.call("deploy", {"service": "s", "version": "1"}, **CAPABLE),
            client.tokens["access_token"],
        ).message["result"]
        assert question["resultType"] == "input_required"
        disconnect(two_nodes, client.name)
        for line in (*listening, *calls):
            raw.read_until(line, LAST_CHUNK)
        for stream in streams:
            while stream.next() is not None:
                pass
        for task in tasks:
            wait_until(lambda task=task: state_of(two_nodes, task) != "working")
            assert state_of(two_nodes, task) == "failed"
    assert client.call("echo", text="again").status == 401
    refused = client.send_refresh(client.tokens["refresh_token"])
    assert (refused.status, refused.json["error"]) == (400, "invalid_grant")
    # The person allows it again: that is another connection, to which nothing of the first belongs.
    client.consent()
    client.redeem()
    client.use()
    answer: dict[str, Any] = {"name": "deploy", "arguments": {"service": "s", "version": "1"}}
    state = {"requestState": question["requestState"], "inputResponses": {}}
    retried = raw.request("tools/call", {**answer, **state}, **CAPABLE)
    for server in processes:
        reply = raw.post(server, retried, client.tokens["access_token"])
        assert "error" in reply.message, reply.body
