"""A script's loop in a session-based revision: the process that holds its call is killed while the
person thinks, once in every turn but one."""

import asyncio
import json
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx2
import pytest

from tests.e2e import scripts
from tests.e2e.asking import at
from tests.e2e.nodes import Node, Service
from tests.e2e.scripts import TURNS, Prices
from tests.e2e.sessions import Session

PATIENCE = 90


@pytest.fixture
def prices() -> Iterator[Prices]:
    with scripts.pricing() as started:
        yield started


@pytest.fixture
def service(machine: None, prices: Prices, tmp_path: Path) -> Iterator[Service]:
    with scripts.service(tmp_path, prices) as two:
        scripts.publish(two, prices, "In sessions.")
        for node in (two.first, two.second):
            node.stop()
            node.start(signal.SIGKILL)
        yield two


def _killed(node: Node) -> None:
    node.stop()
    node.start(signal.SIGKILL)


async def test_a_loop_goes_on_when_its_process_is_killed_while_the_person_thinks(
    service: Service, prices: Prices
) -> None:
    nodes = (service.first, service.second)
    asked = []
    async with httpx2.AsyncClient(timeout=PATIENCE) as http:
        session = await Session.begun(http, at(service, nodes[1]))
        last_id = ""
        for turn in range(TURNS):
            here, there = nodes[turn % 2], nodes[1 - turn % 2]
            async with AsyncExitStack() as ends:
                if turn:
                    reading = session.resuming(at(service, here), last_id)
                else:
                    arguments = scripts.asker("session").arguments
                    reading = session.calling(at(service, here), scripts.TOOL, arguments)
                stream = await ends.enter_async_context(reading)
                question = await stream.question()
                last_id = stream.last_id
                asked.append(question["params"]["message"])
                await asyncio.to_thread(_killed, here)
            answer = scripts.bags(asked[-1])
            await session.answer(at(service, there), question, answer)
        async with session.resuming(at(service, nodes[TURNS % 2]), last_id) as stream:
            text = await stream.text()
    assert json.loads(text) == scripts.expected("session")
    assert [scripts.seat(message) for message in asked] == list(range(TURNS))
    assert prices.requests("session") == dict.fromkeys(range(TURNS), 1)
