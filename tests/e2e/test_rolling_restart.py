"""Both processes are restarted, one after the other, with another master key, and no call fails.

Meanwhile clients call through a balancer that honours `/readyz` and through nginx, which does not ask for it; some
are asked and answer at once, others think for longer than all of it takes.
"""

import re
import ssl
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.e2e import raw, shared_services
from tests.e2e.handmade_calls import Asker, Numbered, accept
from tests.e2e.load import CALLS, PAUSE, Load, loading
from tests.e2e.nodes import Node, Service
from tests.e2e.processes import Server
from tests.e2e.test_cancelled_calls import WHY, cancelled, told
from tests.e2e.test_keys import answer, ask, is_done
from tests.e2e.test_keys import asking as asked_across
from tests.e2e.test_nginx import front, tls

__all__ = ["front", "tls"]

PATIENCE = 60
WORKERS = 2


class AskingLoad:
    """Calls that ask, one after the other, through the balancer; some take their time to act."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._over = threading.Event()
        self._went_on = threading.Event()
        self.done: Counter[str] = Counter()

    def work(self, worker: int) -> None:
        number = worker
        while not self._over.is_set():
            self._deploy() if number % 5 == 0 else self._ask(Numbered(number))
            self._went_on.set()
            self._over.wait(PAUSE)
            number += WORKERS

    def _ask(self, call: Numbered) -> None:
        assert call.is_told_by(call.asker.finish(self._server, call.answer))
        self.done["interpret"] += 1

    def _deploy(self) -> None:
        asker = Asker("deploy", {"service": "shop", "version": "v2"})
        said = asker.finish(self._server, lambda *_: accept(deploy=True))
        assert said == "shop v2 is deployed."
        self.done["deploy"] += 1

    def has_gone_on(self) -> None:
        self._went_on.clear()
        assert self._went_on.wait(PATIENCE)

    def end(self) -> None:
        self._over.set()


@contextmanager
def asking_load(server: Server) -> Iterator[AskingLoad]:
    load = AskingLoad(server)
    with ThreadPoolExecutor(WORKERS) as pool:
        working = [pool.submit(load.work, worker) for worker in range(WORKERS)]
        try:
            load.has_gone_on()
            yield load
        finally:
            load.end()
        for each in working:
            each.result(PATIENCE)


@contextmanager
def slow_calls(server: Server) -> Iterator[None]:
    message = raw.call("countdown", {"start": 3, "seconds": 1})
    with ThreadPoolExecutor(2) as pool:
        calls: list[Future[raw.Reply]] = [
            pool.submit(raw.post, server, message, server.token) for _ in range(2)
        ]
        yield
        for each in calls:
            assert each.result(PATIENCE).json["result"]["content"][0]["text"] == "Lift-off!"


class KeyChange:
    """docs/keys.md, "Replace the master key", step by step."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._new = Path(service.settings["MCPHOST_NEW_MASTER_KEY_FILE"])
        self._early = ask(service, service.first)

    def begin(self) -> None:
        with asked_across(self._service) as askers:
            shared_services.write_key(self._new)
            assert re.search(r"Rewrapped: \d+ key", self._service.manage("keys", "rewrap"))
            askers.go_on()
            self._new.rename(self._service.settings["MCPHOST_MASTER_KEY_FILE"])
            askers.go_on()
        assert askers.wrong == []

    def goes_on(self, staying: Node) -> None:
        assert is_done(answer(self._service, staying, self._early))
        self._early = ask(self._service, staying)

    def end(self) -> None:
        service = self._service
        with asked_across(service) as askers:
            rewrapped = service.manage("keys", "rewrap", "--yes")
            assert re.search(r"Rewrapped: \d+ key", rewrapped)
            askers.go_on()
        assert askers.wrong == []
        assert is_done(answer(service, service.first, self._early))


def restart(service: Service, leaving: Node, staying: Node, loads: list[Load | AskingLoad]) -> None:
    proxy = service.proxy
    _go_on(loads)
    leaving.stop()
    proxy.wait_for(staying.port)
    _go_on(loads)
    leaving.start()
    proxy.wait_for(leaving.port, staying.port)
    _go_on(loads)


def _go_on(loads: list[Load | AskingLoad]) -> None:
    for load in loads:
        load.has_gone_on()


def test_no_call_fails_during_a_rolling_restart_with_a_new_master_key(
    two_nodes: Service, front: Server, tls: ssl.SSLContext
) -> None:
    patient, service = Numbered(500), two_nodes
    question = patient.asker.leg(service.server)
    state, keys = cancelled(service), KeyChange(service)
    keys.begin()
    service.proxy.served.clear()
    with ExitStack() as ends:
        plain = ends.enter_context(loading(service.server))
        behind = ends.enter_context(loading(front, tls))
        deep = ends.enter_context(asking_load(service.server))
        for leaving, staying in (
            (service.first, service.second),
            (service.second, service.first),
        ):
            with slow_calls(service.server):
                restart(service, leaving, staying, [plain, behind, deep])
            keys.goes_on(staying)
    keys.end()
    assert plain.failures == behind.failures == service.proxy.failures == []
    assert set(plain.answers) == set(behind.answers) == {name for name, _ in CALLS}
    assert deep.done.keys() == {"interpret", "deploy"}
    assert service.proxy.served.keys() == {service.first.port, service.second.port}
    assert patient.is_told_by(patient.asker.finish(service.server, patient.answer, question))
    assert WHY in told(answer(service, service.second, state)), "both have started since"
