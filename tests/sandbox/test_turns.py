"""Whose turn it is: tenants share the workers, however many jobs each of them has."""

import pytest

from mcphost.sandbox.turns import (
    MAX_WAITING,
    MAX_WAITING_PER_TENANT,
    QueueFullError,
    TenantTurns,
)


def served(turns: TenantTurns[str], most: int = 100) -> list[str]:
    """Give workers until no waiter may have one; return who got them."""
    found: list[str] = []
    while len(found) < most and (tenant := turns.next()) is not None:
        found.append(turns.begin(tenant))
    return found


def filled(most: int, *tenants: str) -> TenantTurns[str]:
    turns = TenantTurns[str](most)
    turns.in_use.update(tenants)
    return turns


def test_a_tenant_uses_at_most_half_of_the_workers():
    turns = TenantTurns[str](4)
    for number in range(9):
        turns.join("acme", f"a{number}")
    assert served(turns) == ["a0", "a1"]
    assert turns.has_its_share("acme")


def test_the_last_free_worker_is_reserved_for_a_tenant_without_one():
    turns = filled(4, "acme", "acme", "globex")
    turns.join("globex", "g")
    assert served(turns) == []
    turns.join("initech", "i")
    assert served(turns) == ["i"]
    turns.end("acme")
    assert served(turns) == []  # the worker that is free now is again the last one
    turns.end("acme")
    assert served(turns) == ["g"]


def test_a_tenant_without_a_worker_gets_one_of_the_reserve_when_all_are_in_use():
    turns = filled(2, "acme", "globex")
    turns.reserve = 2
    turns.join("acme", "a")
    for tenant in ("initech", "hooli", "umbrella"):
        turns.join(tenant, tenant[0])
    turns.join("initech", "i2")
    assert served(turns) == ["i", "h"]
    turns.end("acme")
    assert served(turns) == ["a"]
    turns.end("globex")
    assert served(turns) == ["u"]
    turns.end("hooli")
    assert served(turns) == []  # the one that waits has a worker


def test_tenants_alternate_however_many_jobs_of_each_wait():
    turns = filled(2, "else", "other")
    for number in range(5):
        turns.join("acme", f"a{number}")
    turns.join("globex", "g0")
    turns.join("globex", "g1")
    turns.join("initech", "i0")
    turns.end("other")
    order: list[str] = []
    for _ in range(8):
        order += served(turns, 1)
        turns.end({"a": "acme", "g": "globex", "i": "initech"}[order[-1][0]])
    assert order == ["a0", "g0", "i0", "a1", "g1", "a2", "a3", "a4"]


def test_new_tenants_do_not_overtake_a_waiting_tenant():
    turns = filled(1, "else")
    turns.join("acme", "a")
    for number in range(5):
        turns.join(f"new {number}", f"n{number}")
    turns.end("else")
    assert served(turns, 1) == ["a"]


def test_the_tenant_that_uses_the_fewest_workers_is_next():
    turns = filled(8, "acme", "acme", "globex")
    turns.join("acme", "a")
    turns.join("globex", "g")
    turns.join("initech", "i")
    assert served(turns) == ["i", "g", "a"]


def test_a_job_that_is_withdrawn_takes_no_turn():
    turns = filled(1, "else")
    turns.join("acme", "a")
    turns.join("globex", "g")
    assert turns.withdraw("acme", "a")
    assert not turns.withdraw("acme", "a")
    assert (turns.waiting, turns.end("else"), served(turns)) == (1, None, ["g"])


def test_the_number_of_waiting_jobs_is_limited_per_tenant_and_in_total():
    turns = filled(1, "else")
    for number in range(MAX_WAITING_PER_TENANT):
        turns.join("acme", f"a{number}")
    with pytest.raises(QueueFullError):
        turns.join("acme", "one more")
    for number in range(MAX_WAITING - turns.waiting):
        turns.join(f"tenant {number}", "x")
    with pytest.raises(QueueFullError):
        turns.join("globex", "g")
    assert turns.waiting == MAX_WAITING
    assert not turns.withdraw("globex", "g")
