"""The status of two processes: one is killed, and Redis goes away and comes back."""

import json
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import nodes
from tests.e2e.nodes import Node, Service

TOKEN = "a-token-for-monitoring"
PATIENCE = 60.0
PAUSE = 0.2

Status = Mapping[str, Any]


@pytest.fixture
def service(machine: None, tmp_path: Path) -> Iterator[Service]:
    with nodes.service(tmp_path, MCPHOST_METRICS_TOKEN=TOKEN) as two:
        yield two


def status(node: Node) -> tuple[int, Status]:
    line = HTTPConnection("127.0.0.1", node.port, timeout=PATIENCE)
    try:
        line.request("GET", "/status.json", headers={"Authorization": f"Bearer {TOKEN}"})
        response = line.getresponse()
        return response.status, json.loads(response.read())
    finally:
        line.close()


def until(node: Node, test: Callable[[int, Status], bool]) -> Status:
    """The first status of a node that passes."""
    ends = time.monotonic() + PATIENCE
    while True:
        code, found = status(node)
        if test(code, found):
            return found
        assert time.monotonic() < ends, f"{code}: {found}"
        time.sleep(PAUSE)  # between looks at other processes


def reasons(found: Status) -> Mapping[str, str]:
    return {line["name"]: line["reason"] for line in found["lines"] if line["reason"]}


def states(found: Status) -> list[str]:
    return sorted(each["state"] for each in found["processes"])


def test_each_process_answers_for_both_and_a_killed_one_is_gone_within_its_time(
    service: Service,
) -> None:
    for node in (service.first, service.second):
        found = until(node, lambda code, found: code == 200)
        assert states(found) == ["serves", "serves"]
        versions = {each["facts"]["version"] for each in found["processes"]}
        assert len(versions) == 1
    page = service.admin().get("/admin/status/")
    assert "All is well." in page
    service.second.stop()
    found = until(service.first, lambda code, found: states(found) == ["serves"])
    assert reasons(found) == {}, "one that has left is no problem"
    service.second.start(ending=signal.SIGKILL)
    until(service.first, lambda code, found: states(found) == ["serves", "serves"])
    service.second.stop()
    found = until(service.first, lambda code, found: "gone" in states(found))
    assert list(reasons(found)) == ["processes"]
    assert "No heartbeat from" in service.admin().get("/admin/status/")


def test_redis_that_is_away_is_a_reason_and_nothing_else_is(service: Service) -> None:
    until(service.first, lambda code, found: code == 200)
    service.redis.stop()
    found = until(service.first, lambda code, found: "redis" in reasons(found))
    assert list(reasons(found)) == ["redis"]
    service.redis.start()
    until(service.first, lambda code, found: code == 200)
