"""Nodes come and go, and so does Redis: only who was on a node that was killed notices."""

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.e2e import nodes, raw
from tests.e2e.load import loading
from tests.e2e.nodes import Node, Service
from tests.e2e.test_listening import DISABLE, ENABLE

CHANGED = b"notifications/tools/list_changed"
ACKNOWLEDGED = b"notifications/subscriptions/acknowledged"
LISTEN = raw.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}})


@pytest.fixture
def service(machine: None, tmp_path: Path) -> Iterator[Service]:
    with nodes.service(tmp_path) as two:
        yield two


def test_only_what_was_on_a_killed_node_fails_and_an_added_one_takes_its_share(
    service: Service, tmp_path: Path
) -> None:
    proxy, victim = service.proxy, service.second
    victim.stop()
    victim.start(ending=signal.SIGKILL)
    proxy.wait_for(service.first.port, victim.port)
    added = Node(tmp_path / "three" / "home", **service.settings)
    added.home.parent.mkdir()
    with loading(service.server) as load:
        load.has_gone_on()
        victim.stop()
        proxy.wait_for(service.first.port)
        load.has_gone_on()
        added.start()
        try:
            proxy.add(added.port)
            proxy.wait_for(service.first.port, added.port)
            proxy.wait_until_served_by(added.port)
        finally:
            load.end()
    added.stop()
    assert all(failure.startswith(f"{victim.port}: ") for failure in proxy.failures)
    assert len(load.failures) == len(proxy.failures)
    assert proxy.served[service.first.port]


def test_without_redis_calls_go_on_and_news_is_heard_and_so_it_is_afterwards(
    service: Service,
) -> None:
    steps = (lambda: None, service.redis.stop, service.redis.start)
    moves = (DISABLE, ENABLE, DISABLE)
    with (
        _listening(service, service.first) as first,
        _listening(service, service.second) as second,
        loading(service.server) as load,
    ):
        for step, move in zip(steps, moves, strict=True):
            step()
            load.has_gone_on()
            service.manage("shell", "-c", move)
            raw.read_until(first, CHANGED)
            raw.read_until(second, CHANGED)
            load.has_gone_on()
    assert (load.failures, service.proxy.failures) == ([], [])
    assert service.proxy.served.keys() == {service.first.port, service.second.port}


@contextmanager
def _listening(service: Service, node: Node) -> Iterator[socket.socket]:
    """A connection to one node, on which changes of tools are told."""
    with raw.opened(replace(service.server, port=node.port), LISTEN) as line:
        raw.read_until(line, ACKNOWLEDGED)
        yield line
