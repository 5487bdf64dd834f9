"""An operator cancels a waiting call on one process, and a client of the other gets the reason."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import httpx2

from tests.e2e.admin import Admin
from tests.e2e.handmade_calls import at, wait_until
from tests.e2e.nodes import Service
from tests.e2e.sessions import Session
from tests.e2e.test_keys import BUGS, answer, ask, call, is_done

WHY = "the release is off"
LIST = "/admin/t/demo/input-requests/"
ARGUMENTS = {"workItemId": BUGS[0], "fields": {"System.State": "Resolved"}}


def waiting(admin: Admin) -> set[str]:
    """The pages that cancel the calls of open questions."""
    calls = re.findall(
        r'href="/admin/t/demo/calls/([0-9a-f-]{36})/"', admin.get(f"{LIST}?state=open")
    )
    return {f"{LIST}{call}/cancel/" for call in calls}


@contextmanager
def cancelling(service: Service) -> Iterator[Callable[[], None]]:
    """What is yielded cancels the only call that began to wait meanwhile, at the first process."""
    admin = service.admin()
    before = waiting(admin)

    def cancel() -> None:
        # The list is a summary: while another process writes to it, it may lack the newest call.
        wait_until(lambda: len(waiting(admin) - before) == 1)
        (path,) = waiting(admin) - before
        assert "is waiting for an answer to “Resolution”" in admin.get(path)
        admin.post(path, reason=WHY)
        wait_until(lambda: path not in waiting(admin))

    yield cancel


def cancelled(service: Service) -> str:
    with cancelling(service) as cancel:
        state = ask(service, service.first)
        cancel()
    return state


def told(answered: dict[str, dict[str, object]]) -> str:
    assert answered["result"]["isError"] is True, answered
    return str(answered["result"]["content"])


def test_a_stateless_client_gets_the_cancellation_reason_from_the_other_process(
    two_nodes: Service,
) -> None:
    state = cancelled(two_nodes)
    assert WHY in told(answer(two_nodes, two_nodes.second, state))
    assert WHY in told(call(two_nodes, two_nodes.second, BUGS[0], requestState=state))
    assert is_done(answer(two_nodes, two_nodes.second, ask(two_nodes, two_nodes.first)))


async def test_a_session_client_gets_the_cancellation_on_its_stream_at_the_other_process(
    two_nodes: Service,
) -> None:
    there = at(two_nodes, two_nodes.second)
    async with httpx2.AsyncClient(timeout=60) as http:
        session = await Session.begun(http, there)
        with cancelling(two_nodes) as cancel:
            async with session.calling(there, "update_work_item", ARGUMENTS) as stream:
                question = await stream.question()
                cancel()
                withdrawn = await stream.message()
                assert withdrawn["method"] == "notifications/cancelled"
                assert withdrawn["params"]["requestId"] == question["id"]
                assert WHY in told(await stream.message())
