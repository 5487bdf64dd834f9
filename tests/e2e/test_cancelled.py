"""An operator cancels a waiting call on one process, and the client of the other is told why."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.e2e import nodes
from tests.e2e.asking import at
from tests.e2e.nodes import Service
from tests.e2e.sessions import Session
from tests.e2e.test_keys import BUGS, answer, ask, call, is_done

WHY = "the release is off"
LIST = "/admin/t/demo/input-requests/"
ARGUMENTS = {"workItemId": BUGS[0], "fields": {"System.State": "Resolved"}}


@pytest.fixture
def service(machine: None, tmp_path: Path) -> Iterator[Service]:
    with nodes.service(tmp_path) as two:
        yield two


def cancel(service: Service) -> None:
    """Cancel the only call that waits, at the first process."""
    admin = service.admin()
    (path,) = set(re.findall(rf'href="({LIST}[0-9a-f-]{{36}}/cancel/)"', admin.get(LIST)))
    assert "waits for a response to resolution" in admin.get(path)
    admin.post(path, reason=WHY)
    assert "No open input request" in admin.get(LIST)


def told(answered: dict[str, dict[str, object]]) -> str:
    assert answered["result"]["isError"] is True, answered
    return str(answered["result"]["content"])


def test_a_stateless_client_is_told_by_the_other_process_and_by_one_that_starts_later(
    service: Service,
) -> None:
    state = ask(service, service.first)
    cancel(service)
    assert WHY in told(answer(service, service.second, state))
    assert WHY in told(call(service, service.second, BUGS[0], requestState=state))
    service.second.stop()
    service.second.start()
    assert WHY in told(answer(service, service.second, state))
    assert is_done(answer(service, service.second, ask(service, service.first)))


async def test_a_sessions_client_is_told_on_its_stream_at_the_other_process(
    service: Service,
) -> None:
    there = at(service, service.second)
    async with httpx2.AsyncClient(timeout=60) as http:
        session = await Session.begun(http, there)
        async with session.calling(there, "update_work_item", ARGUMENTS) as stream:
            question = await stream.question()
            cancel(service)
            withdrawn = await stream.message()
            assert withdrawn["method"] == "notifications/cancelled"
            assert withdrawn["params"]["requestId"] == question["id"]
            assert WHY in told(await stream.message())
