"""Nodes and Redis start and stop: only calls on a killed node fail, and the status reports it."""

import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from tests.e2e import raw
from tests.e2e.handmade_calls import METRICS_TOKEN, at
from tests.e2e.load import loading
from tests.e2e.nodes import Node, Service

CHANGED = b"notifications/tools/list_changed"
ACKNOWLEDGED = b"notifications/subscriptions/acknowledged"
LISTEN = raw.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
PATIENCE = 60.0
PAUSE = 0.2

Status = Mapping[str, Any]


def status(node: Node) -> Status:
    line = HTTPConnection("127.0.0.1", node.port, timeout=PATIENCE)
    try:
        line.request("GET", "/status.json", headers={"Authorization": f"Bearer {METRICS_TOKEN}"})
        found: Status = json.loads(line.getresponse().read())
        return found
    finally:
        line.close()


def until(node: Node, test: Callable[[Status], bool]) -> Status:
    ends = time.monotonic() + PATIENCE
    while not test(found := status(node)):
        assert time.monotonic() < ends, found
        time.sleep(PAUSE)  # between looks at other processes
    return found


def reasons(found: Status) -> Mapping[str, str]:
    return {line["name"]: line["reason"] for line in found["lines"] if line["reason"]}


def states(found: Status, *nodes: Node) -> list[str]:
    """What the processes of these nodes do, in order; empty for one that is not known."""
    by_pid = {int(each["name"].rpartition(":")[2]): each["state"] for each in found["processes"]}
    return [by_pid.get(node.pid, "") for node in nodes]


def test_only_calls_on_a_killed_node_fail_and_an_added_node_gets_its_share(
    two_nodes: Service, tmp_path: Path
) -> None:
    proxy, first, victim = two_nodes.proxy, two_nodes.first, two_nodes.second
    before = reasons(status(first)).keys()
    added = Node(tmp_path / "three" / "home", **two_nodes.settings)
    added.home.parent.mkdir()
    with loading(two_nodes.server) as load:
        load.has_gone_on()
        added.start()
        try:
            proxy.add(added.port)
            proxy.wait_for(first.port, victim.port, added.port)
            proxy.wait_until_served_by(added.port)
            every = until(
                first, lambda found: states(found, first, victim, added) == ["serves"] * 3
            )
            assert len({each["facts"]["version"] for each in every["processes"]}) == 1
        finally:
            added.stop()
            proxy.remove(added.port)
        load.has_gone_on()
        assert load.failures == proxy.failures == []
        left = until(first, lambda found: states(found, first, victim, added)[2] == "")
        assert f":{added.pid}" not in reasons(left).get("processes", ""), "who left is no problem"
        victim.kill()
        proxy.wait_for(first.port)
        load.has_gone_on()
    assert all(failure.startswith(f"{victim.port}: ") for failure in proxy.failures)
    assert len(load.failures) == len(proxy.failures)
    found = until(first, lambda found: states(found, first, victim) == ["serves", "gone"])
    assert reasons(found).keys() <= before | {"processes"}
    assert "processes" in reasons(found)
    assert "No heartbeat from" in two_nodes.admin().get("/admin/status/")
    victim.start()
    until(first, lambda found: states(found, first, victim) == ["serves", "serves"])


def test_calls_and_notifications_continue_while_redis_is_away_and_afterwards(
    two_nodes: Service,
) -> None:
    steps = (lambda: None, two_nodes.redis.stop, two_nodes.redis.start)
    verbs = ("disable", "enable", "disable")
    two_nodes.proxy.served.clear()
    with (
        _listening(two_nodes, two_nodes.first) as first,
        _listening(two_nodes, two_nodes.second) as second,
        loading(two_nodes.server) as load,
    ):
        for step, verb, unreachable in zip(steps, verbs, (False, True, False), strict=True):
            step()
            load.has_gone_on()
            until(two_nodes.first, lambda found, it=unreachable: ("redis" in reasons(found)) is it)
            two_nodes.change(verb)
            raw.read_until(first, CHANGED)
            raw.read_until(second, CHANGED)
            load.has_gone_on()
    two_nodes.change("enable")
    assert (load.failures, two_nodes.proxy.failures) == ([], [])
    assert two_nodes.proxy.served.keys() == {two_nodes.first.port, two_nodes.second.port}


@contextmanager
def _listening(service: Service, node: Node) -> Iterator[socket.socket]:
    with raw.opened(at(service, node), LISTEN) as line:
        raw.read_until(line, ACKNOWLEDGED)
        yield line
