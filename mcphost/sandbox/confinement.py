"""What a worker process does to itself before it reads anything of a tenant. Linux only."""

import ctypes
import os
import resource
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

PR_SET_NO_NEW_PRIVS: Final = 38
CLONE_NEWNET: Final = 0x40000000
CLONE_NEWIPC: Final = 0x08000000

ADDRESS_SPACE: Final = 768 * 1024 * 1024
CPU_SECONDS: Final = 120
OPEN_FILES: Final = 64
NICE: Final = 10
"""Added to the priority of the server: where CPU is scarce, scripts get what the server leaves."""
MORE_NICE: Final = 5
"""What a worker gets in addition once a job of it has computed for long: others go first."""


def confine(
    user: int, needed: Path, *, memory: int = ADDRESS_SPACE, cpu_seconds: int = CPU_SECONDS
) -> dict[str, Any]:
    """Give up what the process does not need, and return what could be given up.

    `user` is the id of the user to become, if this process may become it and that user can run
    `needed`. Limits (`memory` in bytes) and `no_new_privs` hold always, or OSError is raised.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    os.nice(NICE)
    alone = libc.unshare(CLONE_NEWNET | CLONE_NEWIPC) == 0
    for kind, limit in {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_NOFILE: OPEN_FILES,
        resource.RLIMIT_CPU: cpu_seconds,
        resource.RLIMIT_AS: memory,
    }.items():
        _limit(kind, limit)
    own = _become(user, needed)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs cannot be set")
    return {"own_user": own, "no_network": alone, "no_new_privileges": True}


def demote(leader: int) -> None:
    """Give a worker less priority than others have. `leader` leads its process group and session.

    Where the kernel shares the CPU among sessions first (`sched_autogroup_enabled`), the priority of a
    process counts only within its session, so the session gets one, too.
    """
    with suppress(OSError):
        nice = os.getpriority(os.PRIO_PROCESS, leader) + MORE_NICE
        os.setpriority(os.PRIO_PGRP, leader, min(nice, 19))
    with suppress(OSError):
        Path(f"/proc/{leader}/autogroup").write_text(str(MORE_NICE))


def allow_no_more_processes(*children: int) -> None:
    """Let neither this process nor these children of it start a process or a thread again."""
    for process in (0, *children):
        resource.prlimit(process, resource.RLIMIT_NPROC, (0, 0))


def _limit(kind: int, maximum: int) -> None:
    """Set both limits, to no more than the hard limit of today."""
    _, hard = resource.getrlimit(kind)
    limit = maximum if hard == resource.RLIM_INFINITY else min(maximum, hard)
    resource.setrlimit(kind, (limit, limit))


def _become(user: int, needed: Path) -> bool:
    """Become a user without groups and capabilities. Returns False where that is not permitted."""
    if os.geteuid() != 0:
        return False
    groups, group = os.getgroups(), os.getegid()
    try:
        os.setgroups([])
        os.setegid(user)
        os.seteuid(user)
        if not os.access(needed, os.X_OK, effective_ids=True):
            raise PermissionError(needed)
        os.seteuid(0)
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    except OSError:
        with suppress(OSError):  # where the first call failed there is nothing to undo
            os.seteuid(0)
            os.setegid(group)
            os.setgroups(groups)
        return False
    return True
