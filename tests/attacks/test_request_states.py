"""Attacks by request states: one state sent back often, with answers and without, in any order, to two processes.

What one process makes of them is in `tests/rounds/test_repeated_states.py`.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from secrets import token_hex
from typing import Any

import pytest

from tests.e2e import raw
from tests.e2e.handmade_calls import Asker, accept, at, effects
from tests.e2e.nodes import Service
from tests.e2e.processes import Server

REFUSAL = {"reason": "invalid_request_state"}
PATIENCE = 60


def _program(key: str) -> Sequence[Any]:
    return [["ask", "q0"], ["step", f"{key} a", 1], ["ask", "q1"], ["step", f"{key} b", 2]]


@pytest.mark.requirement("mrtr.one-set")
@pytest.mark.parametrize("seed", range(2))
def test_request_states_sent_to_two_processes_in_any_order_take_effect_once(
    two_nodes: Service, seed: int
) -> None:
    """Retries without answers, with one answer or the other, repetitions, some of them at once."""
    chance, key = random.Random(seed), f"seed {seed} {token_hex(4)}"
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
