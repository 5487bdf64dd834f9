"""Keys are rotated while calls wait for input: requested on one node, answered on the other."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from tests.e2e import raw
from tests.e2e.handmade_calls import CAPABLE, MOST_LEGS, at
from tests.e2e.nodes import Node, Service

PATIENCE = 60
PAUSE = 0.1
BUGS = (4522, 4301)
ANSWER = {"resolution": {"action": "accept", "content": {"resolution": "Fixed"}}}


def call(service: Service, node: Node, bug: int, **more: Any) -> dict[str, Any]:
    for _ in range(MOST_LEGS):
        arguments = {"workItemId": bug, "fields": {"System.State": "Resolved"}}
        message = raw.call("update_work_item", arguments, **CAPABLE)
        message["params"] |= more
        reply = raw.post(at(service, node), message, service.server.token)
        told: dict[str, Any] = reply.json
        result = told.get("result", {})
        if result.get("resultType") != "input_required" or result.get("inputRequests"):
            return told
        more = {"requestState": result["requestState"]}
    raise AssertionError(f"it is moved again and again: {told}")


def ask(service: Service, node: Node, bug: int = BUGS[0]) -> str:
    asked = call(service, node, bug)
    assert asked["result"]["resultType"] == "input_required", asked
    state: str = asked["result"]["requestState"]
    return state


def answer(service: Service, node: Node, state: str, bug: int = BUGS[0]) -> dict[str, Any]:
    return call(service, node, bug, requestState=state, inputResponses=ANSWER)


def is_done(answered: dict[str, Any]) -> bool:
    return answered.get("result", {}).get("resultType") == "complete" and not answered[
        "result"
    ].get("isError")


class Askers:
    """Some calls a second, each asked on the one node and answered on the other."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._over = threading.Event()
        self._went_on = threading.Event()
        self.wrong: list[dict[str, Any]] = []
        self.done = 0

    def work(self, asked: Node, told: Node, bug: int) -> None:
        while not self._over.is_set():
            answered = answer(self._service, told, ask(self._service, asked, bug), bug)
            if not is_done(answered):
                self.wrong.append(answered)
            self.done += 1
            self._went_on.set()
            self._over.wait(PAUSE)

    def go_on(self) -> None:
        self._went_on.clear()
        assert self._went_on.wait(PATIENCE)

    def end(self) -> None:
        self._over.set()


@contextmanager
def asking(service: Service) -> Iterator[Askers]:
    askers = Askers(service)
    one, two = service.first, service.second
    with ThreadPoolExecutor(2) as pool:
        under_way: list[Future[None]] = [
            pool.submit(askers.work, one, two, BUGS[0]),
            pool.submit(askers.work, two, one, BUGS[1]),
        ]
        try:
            askers.go_on()
            yield askers
        finally:
            askers.end()
        for each in under_way:
            each.result(PATIENCE)


def test_calls_survive_a_key_rotation_and_fail_after_a_compromise(two_nodes: Service) -> None:
    service = two_nodes
    early = ask(service, service.first)
    with asking(service) as askers:
        said = service.manage("keys", "rotate")
        assert "is now the active key" in said
        askers.go_on()
    assert askers.wrong == []
    late = ask(service, service.second)
    assert early.split(".")[1] != late.split(".")[1]
    assert is_done(answer(service, service.second, early))
    again = ask(service, service.second)
    service.manage("keys", "rotate", "--compromised")
    fresh = ask_until_it_is_another_key(service, late)
    for node in (service.first, service.second):
        for lost in (late, again):
            refused = answer(service, node, lost)
            assert refused["error"]["code"] == -32602
            assert refused["error"]["data"] == {"reason": "invalid_request_state"}
    assert is_done(answer(service, service.first, fresh))


def ask_until_it_is_another_key(service: Service, than: str) -> str:
    states: list[str] = []
    for node in (service.first, service.second):
        for _ in range(200):
            states.append(ask(service, node))
            if states[-1].split(".")[1] != than.split(".")[1]:
                break
        else:
            raise AssertionError("the change was never heard of")
    return states[-1]
