"""Attacks by request states: one state sent back often, with answers and without, in any order."""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest

from tests.e2e import asking, raw
from tests.e2e.asking import Asker, accept, at, effects
from tests.e2e.nodes import Service
from tests.e2e.processes import Server

YES, NO = {"confirm": accept(deploy=True)}, {"confirm": {"action": "decline"}}
DONE = "v2 is deployed."
REFUSAL = {"reason": "invalid_request_state"}
PATIENCE = 60

_services = count(1)


def _deploying() -> Asker:
    """A call of a tool that acts once its caller has said yes."""
    return Asker("deploy", {"service": f"shop {next(_services)}", "version": "v2"})


def _sent(server: Server, asker: Asker, state: str, answers: Mapping[str, Any]) -> str:
    """What a request with a state comes to: the text of the end, `asked again`, or `refused`."""
    reply = raw.post(server, asker.message(state, answers), server.token)
    if "error" in reply.message:
        assert (reply.status, reply.message["error"]["data"]) == (400, REFUSAL), reply.body
        return "refused"
    result = reply.message["result"]
    if result["resultType"] == "input_required":
        return "asked again"
    text: str = result["content"][0]["text"]
    return text


def _states(server: Server, asker: Asker, many: int) -> list[str]:
    """The first state of a call and others that it led to, each from the one before."""
    states = [asker.leg(server)["requestState"]]
    for _ in range(many - 1):
        states.append(asker.leg(server, states[-1])["requestState"])
    return states


def test_a_call_that_was_declined_cannot_be_approved_by_another_of_its_states(
    attacked: Server,
) -> None:
    asker = _deploying()
    first, second, third = _states(attacked, asker, 3)
    assert "declined" in _sent(attacked, asker, second, NO)
    assert [_sent(attacked, asker, state, YES) for state in (first, second, third)] == [
        "refused"
    ] * 3


def test_a_call_that_was_approved_cannot_be_declined_by_another_of_its_states(
    attacked: Server,
) -> None:
    asker = _deploying()
    first, second, third = _states(attacked, asker, 3)
    assert _sent(attacked, asker, third, YES).endswith(DONE)
    assert [_sent(attacked, asker, state, NO) for state in (first, second, third)] == [
        "refused"
    ] * 3


def test_the_same_answer_by_any_of_its_states_gets_the_one_result(attacked: Server) -> None:
    asker = _deploying()
    states = _states(attacked, asker, 3)
    ends = [_sent(attacked, asker, state, YES) for state in (*states, *states)]
    assert len(set(ends)) == 1
    assert ends[0].endswith(DONE)


def test_what_was_answered_is_not_asked_again_by_any_of_its_states(attacked: Server) -> None:
    asker = _deploying()
    states = _states(attacked, asker, 3)
    _sent(attacked, asker, states[1], NO)
    assert {_sent(attacked, asker, state, {}) for state in states} == {"refused"}


@pytest.mark.parametrize("attempt", range(5))
def test_of_opposite_answers_at_once_one_takes_effect(attacked: Server, attempt: int) -> None:
    asker = _deploying()
    sent = [(state, way) for state in _states(attacked, asker, 4) for way in (YES, NO)]
    with ThreadPoolExecutor(len(sent)) as pool:
        came = pool.map(lambda one: _sent(attacked, asker, *one), sent, timeout=PATIENCE)
        ends = set(came)
    assert len(ends - {"refused"}) == 1, ends


@pytest.fixture(scope="module")
def two_nodes(machine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Two processes that share a PostgreSQL database, and no memory."""
    with asking.service(tmp_path_factory.mktemp("states")) as two:
        yield two


def _program(key: str) -> Sequence[Any]:
    """Two questions, and something that is done after each."""
    return [["ask", "q0"], ["step", f"{key} a", 1], ["ask", "q1"], ["step", f"{key} b", 2]]


@pytest.mark.requirement("mrtr.one-set")
@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_sent_to_two_processes_in_which_order_takes_effect_once(
    two_nodes: Service, seed: int
) -> None:
    """Retries without answers, with one answer or the other, repetitions, some of them at once."""
    chance, key = random.Random(seed), f"seed {seed}"
    servers = [at(two_nodes, node) for node in (two_nodes.first, two_nodes.second)]
    asker = Asker("interpret", {"program": _program(key)})
    states, ends = [asker.leg(servers[0])["requestState"]], set()

    def sends(move: tuple[Server, str, Mapping[str, Any]]) -> raw.Reply:
        server, state, answers = move
        return raw.post(server, asker.message(state, answers), server.token)

    with ThreadPoolExecutor(4) as pool:
        for _ in range(25):
            moves = [
                (chance.choice(servers), chance.choice(states[-3:]), _some_answers(chance))
                for _ in range(chance.choice((1, 1, 4)))
            ]
            for reply in pool.map(sends, moves, timeout=PATIENCE):
                _look(reply, states, ends)
    assert len(ends) <= 1, ends
    ran = Counter(line[0] for line in effects(two_nodes) if line[0].startswith(key))
    assert ran
    assert set(ran.values()) == {1}


def _some_answers(chance: random.Random) -> dict[str, Any]:
    keys = chance.choice(((), ("q0",), ("q1",), ("q0", "q1")))
    return {key: accept(number=chance.choice((1, 2))) for key in keys}


def _look(reply: raw.Reply, states: list[str], ends: set[str]) -> None:
    if "error" in reply.message:
        assert (reply.status, reply.message["error"]["data"]) == (400, REFUSAL), reply.body
        return
    result = reply.message["result"]
    if result["resultType"] == "complete":
        if not result.get("isError"):  # it may have run out of requests
            ends.add(result["content"][0]["text"])
    elif result["requestState"] not in states:
        states.append(result["requestState"])
