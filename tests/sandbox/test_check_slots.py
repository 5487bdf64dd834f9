"""How many scripts are checked at once, and how often."""

import threading
import time
from contextlib import ExitStack

import pytest

from mcphost.sandbox.check_slots import (
    MAX_CONCURRENT,
    MAX_PER_MINUTE,
    MAX_WAITING,
    MINUTE,
    ChecksBusyError,
    CheckSlots,
)
from mcphost.sandbox.pool import MAX_PROBLEMS, Sandbox

PATIENCE = 30.0


class Checking:
    """A check in a thread of its own, which holds its place until `end`."""

    def __init__(self, slots: CheckSlots, tenant: str, order: list[str]) -> None:
        self._slots, self._tenant, self._order = slots, tenant, order
        self._may_end = threading.Event()
        self.has_begun = threading.Event()
        self.refused = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            with self._slots.slot(self._tenant, PATIENCE):
                self._order.append(self._tenant)
                self.has_begun.set()
                assert self._may_end.wait(PATIENCE)
        except ChecksBusyError:
            self.refused = True
            self.has_begun.set()

    def end(self) -> None:
        self._may_end.set()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


def waiting(slots: CheckSlots, count: int) -> None:
    """Return when so many checks wait."""
    end = time.monotonic() + PATIENCE
    while slots.waiting != count:
        assert time.monotonic() < end, "they do not wait"
        threading.Event().wait(0.01)


def test_a_process_checks_a_limited_number_of_scripts_at_once():
    slots = CheckSlots()
    with ExitStack() as held:
        for number in range(MAX_CONCURRENT):
            held.enter_context(slots.slot(f"tenant {number}"))
        with pytest.raises(ChecksBusyError), slots.slot("acme"):
            pass
        with pytest.raises(ChecksBusyError), slots.slot("acme", 0.01):
            pass
    with slots.slot("acme"):
        pass


def test_a_tenant_has_one_check_at_a_time():
    slots = CheckSlots()
    with slots.slot("acme"):
        with pytest.raises(ChecksBusyError), slots.slot("acme"):
            pass
        with slots.slot("globex"):
            pass


def test_waiting_checks_start_in_order_and_overtake_only_busy_tenants():
    slots, order = CheckSlots(), list[str]()
    first = Checking(slots, "acme", order)
    second = Checking(slots, "globex", order)
    assert first.has_begun.wait(PATIENCE) and second.has_begun.wait(PATIENCE)
    order.clear()
    again = Checking(slots, "acme", order)
    waiting(slots, 1)
    third = Checking(slots, "initech", order)
    waiting(slots, 2)
    second.end()
    assert third.has_begun.wait(PATIENCE)  # a place is free, and acme has one
    assert order == ["initech"]
    first.end()
    assert again.has_begun.wait(PATIENCE)
    third.end()
    again.end()
    assert order == ["initech", "acme"]


def test_the_number_of_waiting_checks_is_limited_in_total_and_per_tenant():
    slots, order = CheckSlots(), list[str]()
    with ExitStack() as held:
        for number in range(MAX_CONCURRENT):
            held.enter_context(slots.slot(f"running {number}"))
        checks = []
        for number in range(MAX_WAITING):
            checks.append(Checking(slots, f"waiting {number}", order))
            waiting(slots, number + 1)
        for tenant in ("waiting 0", "one more"):
            refused = Checking(slots, tenant, order)
            refused.end()
            assert refused.refused
    for check in checks:
        check.end()
    assert sorted(order) == [f"waiting {number}" for number in range(MAX_WAITING)]


def test_the_number_of_checks_per_minute_is_limited_per_tenant():
    now = 1000.0
    slots = CheckSlots(lambda: now)
    for _ in range(MAX_PER_MINUTE):
        with slots.slot("acme"):
            pass
    with pytest.raises(ChecksBusyError, match="in a minute"), slots.slot("acme"):
        pass
    with slots.slot("globex"):
        pass
    now += MINUTE
    with slots.slot("acme"):
        pass


@pytest.mark.parametrize(
    "name",
    [
        "undefined names",
    ],
)
def test_the_number_of_problems_of_a_check_is_limited(sandbox: Sandbox, name: str):
    lines = {"undefined names": "unknown\n", "calls": "len()\n"}[name] * 5_000
    code = f"def f():\n return 1\n{lines}"
    assert len(sandbox.check("acme", code, "")) == MAX_PROBLEMS


def test_a_script_without_problems_is_checked_once_for_each_tenant(sandbox: Sandbox):
    sound, wrong = "def f():\n return 1\n", "unknown\n"
    assert sandbox.check("acme", sound, "") == []
    assert sandbox.check("acme", wrong, "")
    with ExitStack() as busy:
        for tenant in ("acme", "globex"):
            busy.enter_context(sandbox.check_slots.slot(tenant))
        assert sandbox.check("acme", sound, "") == []
        for tenant, code in (("acme", wrong), ("globex", sound)):
            with pytest.raises(ChecksBusyError):
                sandbox.check(tenant, code, "")
