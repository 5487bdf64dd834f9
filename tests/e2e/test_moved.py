"""Real clients whose call is moved off a process that is leaving: they come back with the state alone."""

import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.asking import beside_effects, effects, wait_until
from tests.e2e.callers import command
from tests.e2e.nodes import Node, Service
from tests.e2e.resolving import ended
from tests.e2e.talking import PATIENCE, conversing


def _has_stopped_listening(node: Node) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", node.port)) != 0


@pytest.mark.requirement("mrtr.state-only")
@pytest.mark.parametrize("name", ["python", "typescript"])
def test_a_client_goes_on_elsewhere_with_a_state_and_without_input_requests(
    asked: Service, node: object, name: str, tmp_path: Path
) -> None:
    pause, paused = (beside_effects(asked, suffix) for suffix in (".pause", ".paused"))
    program = [["step", name, 1], ["pause"], ["step", name, 2], ["step", name, 3]]
    before, server, called = len(effects(asked)), asked.server, asked.proxy.called
    with (
        conversing(command(name), tmp_path, url=server.url, token=server.token) as talk,
        ThreadPoolExecutor(1) as pool,
    ):
        talk.hear("met")
        called.clear()
        pause.touch()
        talk.say({"call": "interpret", "arguments": {"program": program}})
        wait_until(paused.exists)
        busy = next(each for each in (asked.first, asked.second) if each.port == called[-1])
        leaving = pool.submit(busy.stop)
        try:
            wait_until(lambda: _has_stopped_listening(busy))
        finally:
            pause.unlink()
            paused.unlink(missing_ok=True)
        text, is_error = ended(talk)
        leaving.result(PATIENCE)
        busy.start()
    assert not is_error, text
    assert [line[:2] for line in effects(asked)[before:]] == [[name, 1], [name, 2], [name, 3]]
    assert len(set(called)) == len(called) == 2
    assert asked.proxy.failures == []
