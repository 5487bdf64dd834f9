"""Real clients whose call is moved off a draining process continue with the request state alone."""

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.callers import command
from tests.e2e.client_process import PATIENCE, conversing
from tests.e2e.demo_responses import ended
from tests.e2e.handmade_calls import beside_effects, effects, wait_until
from tests.e2e.nodes import Node, Service

NAMES = ("python", "typescript")


def _has_stopped_listening(node: Node) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", node.port)) != 0


@pytest.mark.requirement("mrtr.state-only")
def test_clients_continue_a_moved_call_with_a_request_state_alone(
    two_nodes: Service, node: object, tmp_path: Path
) -> None:
    pause, paused = (beside_effects(two_nodes, suffix) for suffix in (".pause", ".paused"))
    before, server, called = len(effects(two_nodes)), two_nodes.server, two_nodes.proxy.called
    busy = two_nodes.first
    with ExitStack() as ends:
        pool, talks = ends.enter_context(ThreadPoolExecutor(1)), {}
        for name in NAMES:
            (tmp_path / name).mkdir()
            asks = conversing(command(name), tmp_path / name, url=server.url, token=server.token)
            talks[name] = ends.enter_context(asks)
            talks[name].hear("met")
        pause.touch()
        with two_nodes.proxy.without(two_nodes.second.port):
            for name, talk in talks.items():
                called.clear()
                program = [["step", name, 1], ["pause"], ["step", name, 2], ["step", name, 3]]
                talk.say({"call": "interpret", "arguments": {"program": program}})
                wait_until(lambda it=name: [it, 1] in _done(two_nodes, before))
                assert called == [busy.port]
        two_nodes.proxy.wait_for(busy.port, two_nodes.second.port)
        called.clear()
        wait_until(paused.exists)
        leaving = pool.submit(busy.stop)
        wait_until(lambda: _has_stopped_listening(busy))
        pause.unlink()
        paused.unlink(missing_ok=True)
        for talk in talks.values():
            text, is_error = ended(talk)
            assert not is_error, text
        leaving.result(PATIENCE)
        busy.start()
    for name in NAMES:
        mine = [step for step in _done(two_nodes, before) if step[0] == name]
        assert mine == [[name, 1], [name, 2], [name, 3]]
    assert called == [two_nodes.second.port] * len(NAMES)
    assert two_nodes.proxy.failures == []


def _done(service: Service, before: int) -> list[list[Any]]:
    return [line[:2] for line in effects(service)[before:]]
