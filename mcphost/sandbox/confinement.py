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


def confine(user: int, needed: Path) -> dict[str, Any]:
    """Give up what the process does not need, and return what could be given up.

    `user` is the id of the user to become, if this process may become it and that user can run
    `needed`. Limits and `no_new_privs` hold always, or OSError is raised.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    alone = libc.unshare(CLONE_NEWNET | CLONE_NEWIPC) == 0
    for what, limit in {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_NOFILE: OPEN_FILES,
        resource.RLIMIT_CPU: CPU_SECONDS,
        resource.RLIMIT_AS: ADDRESS_SPACE,
    }.items():
        _limit(what, limit)
    own = _become(user, needed)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs cannot be set")
    return {"own_user": own, "no_network": alone, "no_new_privileges": True}


def allow_no_more_processes(*children: int) -> None:
    """Let neither this process nor these children of it start a process or a thread again."""
    for process in (0, *children):
        resource.prlimit(process, resource.RLIMIT_NPROC, (0, 0))


def _limit(what: int, most: int) -> None:
    """Set both limits, to no more than the hard limit of today."""
    _, hard = resource.getrlimit(what)
    limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (limit, limit))


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
