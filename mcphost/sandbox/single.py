"""One job in a process of its own, which is killed afterwards: long or large work for one request.

The process is confined like the workers of the pool. It blocks the thread that waits for it, for a
limited time.
"""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from mcphost.sandbox.processes import KILL_SECONDS, ROOT, start
from mcphost.sandbox.single_worker import LENGTH, OUT_OF_MEMORY
from mcphost.sandbox.users import WorkerUser

_CHUNK: Final = 1 << 20
_PROGRAM: Final = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from mcphost.sandbox.single_worker import main; main(*sys.argv[1:])"
)


@dataclass(frozen=True, slots=True)
class JobLimits:
    """What one job may take: seconds in all, bytes of memory, and bytes of its result."""

    seconds: float
    memory: int
    result: int


class JobStoppedError(Exception):
    """A job was ended without a result. The message says why: "it takes more than 45 seconds"."""


class JobCrashedError(JobStoppedError):
    """A job's process ended within its limits, without a result: a fault of ours."""


class NoProcessError(Exception):
    """No process could be started for a job: the machine has no memory, user id or process free."""


def run_single(module: str, job: bytes, limits: JobLimits) -> bytes:
    """Return what `run(job)` of a module returns, in a process of its own. Blocks.

    The module is ours, and imports nothing of Django. Raises JobStoppedError, NoProcessError.
    """
    end = time.monotonic() + limits.seconds
    with _running_process(module, limits) as (process, connection):
        try:
            _wait_until(connection, end)
            connection.sendall(len(job).to_bytes(LENGTH) + job)
            length = int.from_bytes(_read_bytes(connection, LENGTH, end))
            if length > limits.result:
                raise JobStoppedError(f"its result has more than {limits.result >> 20} MiB")
            return _read_bytes(connection, length, end)
        except TimeoutError:
            raise JobStoppedError(f"it takes more than {limits.seconds:g} seconds") from None
        except OSError:  # the process has ended, or ends
            why = _limit_met(process, limits)
            raise (JobStoppedError(why) if why else JobCrashedError("its process ended")) from None


@contextmanager
def _running_process(
    module: str, limits: JobLimits
) -> Iterator[tuple["subprocess.Popen[bytes]", socket.socket]]:
    """Start a process, and end it afterwards. Raises NoProcessError."""
    with ExitStack() as after:
        try:
            user = WorkerUser()
            after.callback(user.free)
            own_end, worker_end = socket.socketpair()
            after.enter_context(own_end)
            with worker_end:
                number, seconds = worker_end.fileno(), int(limits.seconds) + 1
                arguments = (module, number, user.id, limits.memory, seconds)
                process = start(_PROGRAM, number, ROOT, *arguments)
        except OSError as error:
            raise NoProcessError(str(error)) from error
        after.callback(_end_process, process)
        yield process, own_end


def _end_process(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(KILL_SECONDS)


def _read_bytes(connection: socket.socket, count: int, end: float) -> bytes:
    read = bytearray()
    while len(read) < count:
        _wait_until(connection, end)
        part = connection.recv(min(count - len(read), _CHUNK))
        if not part:
            raise ConnectionError
        read += part
    return bytes(read)


def _wait_until(connection: socket.socket, end: float) -> None:
    remaining = end - time.monotonic()
    if remaining <= 0:
        raise TimeoutError
    connection.settimeout(remaining)


def _limit_met(process: "subprocess.Popen[bytes]", limits: JobLimits) -> str:
    """Return which limit a process met; empty if it ended for another reason."""
    with suppress(subprocess.TimeoutExpired):
        status = process.wait(KILL_SECONDS)
        # A library that cannot allocate aborts; the kernel kills where the machine has no memory.
        if status in (OUT_OF_MEMORY, -signal.SIGABRT, -signal.SIGSEGV, -signal.SIGKILL):
            return f"it takes more than {limits.memory >> 20} MiB of memory"
        if status == -signal.SIGXCPU:
            return f"it takes more than {limits.seconds:g} seconds"
    return ""
