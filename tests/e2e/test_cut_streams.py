"""Connections of real clients are cut during calls: clients that reconnect lose no message."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest

from tests.e2e.callers import command
from tests.e2e.client_process import Talk, conversing
from tests.e2e.closable_port import Gate
from tests.e2e.demo_responses import DUPLICATE, HOW, OF_WHICH, ORIGINAL, RESOLVE, RESOLVED, ended
from tests.e2e.nodes import Service
from tests.e2e.test_older_clients import OLDEST, SPEAK

RESUME = ("python", "fastmcp", "typescript", "sdk", "mcp-1.30.0")
"""Who comes back to a stream that was cut."""

RESUME_AGAIN = ("typescript", "sdk")
"""Who remembers, when that stream is cut, too, what it has seen on it."""

PAIRS = [(name, revision) for name in RESUME for revision in SPEAK[name]]
COUNTDOWN = {"call": "countdown", "arguments": {"start": 4, "seconds": 0.5}, "watch": True}


@pytest.fixture(scope="module")
def gate(pair: Service) -> Iterator[Gate]:
    gate = Gate("127.0.0.1", pair.proxy.port)
    gate.open()
    yield gate
    gate.shut()


@pytest.fixture(scope="module")
def talks(
    pair: Service, node: object, gate: Gate, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Talk]]:
    """Every client that resumes, on each revision that it speaks, through the gate."""
    server = replace(pair.server, port=gate.port)
    with ExitStack() as ends:
        talks = []
        for name, revision in PAIRS:
            folder = tmp_path_factory.mktemp(f"{name}-{revision}")
            said = {"url": server.url, "token": server.token, "revision": revision}
            talks.append(ends.enter_context(conversing(command(name), folder, **said)))
        for talk, (_, revision) in zip(talks, PAIRS, strict=True):
            assert talk.hear("met")["revision"] == revision
        yield talks


def cut(gate: Gate) -> None:
    gate.shut()
    gate.open()


def test_progress_and_result_arrive_once_after_a_cut_connection(
    gate: Gate, talks: list[Talk]
) -> None:
    for talk in talks:
        talk.say(COUNTDOWN)
        assert talk.hear("progress") == 0
    cut(gate)
    for talk in talks:
        assert [talk.hear("progress") for _ in range(4)] == [1, 2, 3, 4]
        assert talk.hear("done")["content"][0]["text"] == "Lift-off!"


def finish_posts(talk: Talk) -> None:
    """Wait until this client has read the 202 of its last answer, which may come after the result.

    The Python SDK sends its next message only then, and ends its session if that 202 is cut.
    """
    talk.say({"call": "countdown", "arguments": {"start": 1, "seconds": 0}})
    assert talk.hear("done")["content"][0]["text"] == "Lift-off!"


def those_asked(talks: list[Talk]) -> list[tuple[str, Talk]]:
    pairs = zip(talks, PAIRS, strict=True)
    return [(name, talk) for talk, (name, revision) in pairs if revision != OLDEST]


def test_clients_answer_input_requests_and_get_the_result_after_a_cut_connection(
    gate: Gate, talks: list[Talk]
) -> None:
    asking = those_asked(talks)
    for _, talk in asking:
        talk.say(RESOLVE)
        assert talk.hear("asked")["message"] == HOW
    cut(gate)
    for name, talk in asking:
        talk.say(DUPLICATE)
        assert talk.hear("asked")["message"] == OF_WHICH
        if name not in RESUME_AGAIN:
            talk.say(ORIGINAL)
            assert ended(talk) == (RESOLVED, False)
            finish_posts(talk)
    cut(gate)
    for name, talk in asking:
        if name in RESUME_AGAIN:
            talk.say(ORIGINAL)
            assert ended(talk) == (RESOLVED, False)


def test_clients_answer_input_requests_after_the_requesting_process_was_killed(
    two_nodes: Service, talks: list[Talk]
) -> None:
    asking = those_asked(talks)
    for _, talk in asking:
        talk.say(RESOLVE)
        assert talk.hear("asked")["message"] == HOW
    two_nodes.second.kill()
    two_nodes.proxy.wait_for(two_nodes.first.port)
    for _, talk in asking:
        talk.say(DUPLICATE)
        assert talk.hear("asked")["message"] == OF_WHICH
        talk.say(ORIGINAL)
        assert ended(talk) == (RESOLVED, False)
