"""What the system knows about processes (Linux)."""

import asyncio
import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PATIENCE = 20.0


def interpreter_of(process: int) -> int:
    """Return the process id of a worker's interpreter, its only child."""
    (child,) = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return int(child)


def status_of(process: int) -> dict[str, str]:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def limits_of(process: int) -> dict[str, list[str]]:
    """Return the soft and the hard limit by the system's name for it."""
    lines = Path(f"/proc/{process}/limits").read_text().splitlines()[1:]
    return {line[:26].strip(): line[26:].split()[:2] for line in lines}


def environment_of(process: int) -> bytes:
    return Path(f"/proc/{process}/environ").read_bytes().strip(b"\0")


def opened_by(process: int) -> list[str]:
    """Return what the open files of a process are."""
    return [str(one.readlink()) for one in Path(f"/proc/{process}/fd").iterdir()]


def network_of(process: int | str) -> str:
    """Return the network that a process is in."""
    return str(Path(f"/proc/{process}/ns/net").readlink())


def interfaces_of(process: int) -> list[str]:
    lines = Path(f"/proc/{process}/net/dev").read_text().splitlines()[2:]
    return [line.split(":")[0].strip() for line in lines]


def children_of(process: int | str = "self") -> list[int]:
    """Return the living processes that a process has started, from any of its threads."""
    found: list[int] = []
    for task in Path(f"/proc/{process}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended meanwhile
            found += [int(one) for one in (task / "children").read_text().split()]
    return [one for one in found if runs(one)]


def runs(process: int) -> bool:
    """Whether a process lives: a zombie does not."""
    try:
        return not status_of(process)["State"].startswith("Z")
    except (FileNotFoundError, ProcessLookupError):
        return False


@contextmanager
def files_left(count: int) -> Iterator[None]:
    """Let this process open so many more files, and no more."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(open_files()) + 1 + count, before[1]))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.dup(0))
        for _ in range(count):
            os.close(taken.pop())
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        for number in taken:
            os.close(number)


def open_files() -> set[int]:
    """Return the numbers of the files that this process has open."""
    return {int(one.name) for one in Path("/proc/self/fd").iterdir() if one.exists()}


async def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds, and fail if it does not in time."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "it does not become true"
        await asyncio.sleep(0.01)
