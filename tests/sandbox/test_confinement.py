"""What a worker can and cannot do, as the system sees it."""

import os

import pytest

from mcphost.sandbox.confinement import NICE
from mcphost.sandbox.pool import Sandbox
from mcphost.sandbox.processes import SandboxWorker, WorkerLostError
from mcphost.sandbox.users import WorkerUser
from tests.sandbox.processes import (
    environment_of,
    interfaces_of,
    interpreter_of,
    limits_of,
    network_of,
    opened_by,
    status_of,
)

ROOT = os.geteuid() == 0
"""Only root may give a worker a user and a network of its own."""


async def processes(sandbox: Sandbox) -> list[int]:
    """Return a worker and its interpreter."""
    async with sandbox.worker("acme") as worker:
        worker.reusable = True
        return [worker.process_id, interpreter_of(worker.process_id)]


async def test_a_worker_and_its_interpreter_have_limits_that_cannot_be_raised(sandbox: Sandbox):
    for process in await processes(sandbox):
        limits = limits_of(process)
        assert limits["Max processes"] == ["0", "0"]
        assert limits["Max file size"] == ["0", "0"]
        assert limits["Max core file size"] == ["0", "0"]
        assert limits["Max open files"] == ["64", "64"]
        assert limits["Max cpu time"] == ["120", "120"]
        assert limits["Max address space"] == [str(768 * 1024 * 1024)] * 2


async def test_a_worker_and_its_interpreter_can_gain_no_privileges(sandbox: Sandbox):
    for process in await processes(sandbox):
        assert status_of(process)["NoNewPrivs"] == "1"
    assert sandbox.status["no_new_privileges"] is True


async def test_a_worker_gets_no_environment(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANYTHING", "anything")
    async with sandbox.worker("with a secret around") as worker:
        assert environment_of(worker.process_id) == b""
        assert environment_of(interpreter_of(worker.process_id)) == b""


async def test_a_worker_inherits_no_open_file_of_the_server(sandbox: Sandbox):
    for process in await processes(sandbox):
        harmless = ("socket:", "pipe:", "anon_inode:", "/dev/null")
        assert [one for one in opened_by(process) if not one.startswith(harmless)] == []


async def test_a_worker_runs_as_a_user_without_groups_and_capabilities_where_permitted(
    sandbox: Sandbox,
):
    for process in await processes(sandbox):
        status = status_of(process)
        users = {*status["Uid"].split(), *status["Gid"].split()}
        if ROOT:
            assert len(users) == 1 and "0" not in users
            assert status["Groups"] == ""
            assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
        else:
            assert users >= {str(os.getuid())}
    assert sandbox.status["own_user"] is ROOT


async def test_two_workers_run_as_different_users_where_permitted(sandbox: Sandbox):
    async with sandbox.worker("acme") as one, sandbox.worker("globex") as other:
        users = {status_of(worker.process_id)["Uid"] for worker in (one, other)}
    assert len(users) == (2 if ROOT else 1)


async def test_a_worker_has_no_network_where_permitted(sandbox: Sandbox):
    for process in await processes(sandbox):
        if sandbox.status["no_network"]:
            assert network_of(process) != network_of("self")
            assert interfaces_of(process) == ["lo"]
        else:
            assert network_of(process) == network_of("self")


async def test_a_worker_and_its_interpreter_have_lower_priority_than_the_server(sandbox: Sandbox):
    ours = os.getpriority(os.PRIO_PROCESS, 0)
    for process in await processes(sandbox):
        assert os.getpriority(os.PRIO_PROCESS, process) == min(ours + NICE, 19)


@pytest.fixture
def user_ids(monkeypatch: pytest.MonkeyPatch) -> range:
    """Three user ids for workers that this process starts. Other processes of the run take the usual ones."""
    first = 60_000 + os.getpid() % 4_000
    monkeypatch.setattr("mcphost.sandbox.users.FIRST_USER", first)
    monkeypatch.setattr("mcphost.sandbox.users.USERS", 3)
    return range(first, first + 3)


@pytest.mark.skipif(not ROOT, reason="only root may give a worker a user of its own")
def test_workers_of_two_pools_have_different_users(user_ids: range):
    """Of two tenants, maybe in two processes of the server, or of a call and a check."""
    workers = [SandboxWorker(0) for _ in user_ids]
    users = [status_of(one.process_id)["Uid"].split() for one in workers]
    with pytest.raises(WorkerLostError, match="no user id is free"):
        SandboxWorker(0)
    for one in workers:
        one.kill()
        one.wait()
    assert users == [4 * [str(user)] for user in user_ids]
    again = SandboxWorker(0)
    user = status_of(again.process_id)["Uid"].split()
    again.kill()
    again.wait()
    assert user == users[0]


@pytest.mark.skipif(not ROOT, reason="only root may give a worker a user of its own")
def test_no_worker_starts_without_a_free_user(user_ids: range):
    reserved = [WorkerUser() for _ in user_ids]
    with pytest.raises(OSError, match="no user id is free"):
        WorkerUser()
    for user in reserved:
        user.free()
    following = WorkerUser()
    assert (following.id, following.own) == (user_ids[0], True)
    following.free()
    assert not following.own
