"""One worker process, from the server's side: start it, exchange messages with it, kill it."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

from mcphost.sandbox.confinement import demote
from mcphost.sandbox.frames import HEAD, BrokenFrameError, frame, length_of, message_of
from mcphost.sandbox.users import WorkerUser

ROOT: Final = Path(__file__).resolve().parents[2]
BINARY: Final = Path(sysconfig.get_path("scripts")) / "monty"
START_SECONDS: Final = 30.0
KILL_SECONDS: Final = 10.0
SHORT_SECONDS: Final = 1.0
"""How long a job computes before it has less priority than others."""
CHUNK: Final = 1 << 16

_PROGRAM: Final = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from mcphost.sandbox.worker import main; main(*sys.argv[1:])"
)
_FAILED: Final[Mapping[str, str]] = {
    "error": "error",
    "recursion": "error",
    "result": "error",
    "calls": "error",
    "time": "time",
    "memory": "memory",
    "output": "output",
}
"""What is counted for the reason of a failure."""
_CLEAN: Final = frozenset({"error", "recursion", "result", "calls"})


class WorkerLostError(Exception):
    """A worker process ended, was silent for too long (`late`), or sent what cannot be read.

    `unheard`: it ended before it had sent anything of its job, so that another can do it.
    """

    def __init__(self, message: str, *, late: bool = False, unheard: bool = False) -> None:
        self.late = late
        self.unheard = unheard
        super().__init__(message)


class SandboxWorker:
    """A running worker, for one tenant at most, with one job at a time.

    `slot` is its number in the pool. `busy_seconds` is how long its jobs took in all. `reusable`
    is whether its last job left it as it was. `is_demoted`: it has less priority than others. `job` is what its current job does, `outcome` how it ended,
    for the metrics. The constructor blocks until the worker is ready; it
    raises WorkerLostError.
    """

    def __init__(self, slot: int) -> None:
        self.slot = slot
        self.tenant = ""
        self.jobs = 0
        self.busy_seconds = 0.0
        self.reusable = True
        self.is_killed = False
        self.job = self.outcome = ""
        self._since = self._computed = 0.0
        self.is_demoted = self._heard = False
        self._unread = b""
        try:
            self._user = WorkerUser()
        except OSError as error:
            raise WorkerLostError(f"a worker process did not start: {error}") from None
        try:
            self._process, self._socket = _start_worker(self._user.id)
        except OSError as error:
            self._user.free()
            raise WorkerLostError(f"a worker process did not start: {error}") from None
        try:
            self.status: dict[str, Any] = self.receive_here(START_SECONDS)["status"]
        except (WorkerLostError, KeyError):
            self.kill()
            self.wait()
            raise WorkerLostError("a worker process did not start") from None
        self._socket.setblocking(False)

    @property
    def process_id(self) -> int:
        return self._process.pid

    @property
    def is_gone(self) -> bool:
        """Whether the process has ended, and has been reaped by this."""
        has_ended = self._process.poll() is not None
        if has_ended:
            self._user.free()
        return has_ended

    def kill(self) -> None:
        """Kill the process and its interpreter, whatever they do. `is_gone` reaps it later."""
        self._socket.close()
        self.reusable = False
        self.is_killed = True
        if self._process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def wait(self) -> None:
        """Wait until a killed process has ended, which takes a moment."""
        self._process.wait(KILL_SECONDS)
        self._user.free()

    async def begin(self, job: dict[str, Any]) -> None:
        """Send a job. Raises BrokenFrameError, and then nothing has been sent; WorkerLostError."""
        written = frame(job)
        self.jobs += 1
        self.job, self.outcome = job["do"], "cancelled"
        self.reusable = False
        self._since, self._computed = time.monotonic(), 0.0
        self._heard = False
        await self._send(written)

    async def reply(self, message: dict[str, Any]) -> None:
        """Send a message of a job that has begun. Raises BrokenFrameError, WorkerLostError."""
        await self._send(frame(message))

    async def receive(self, seconds: float) -> dict[str, Any]:
        """Return the next message of the worker. Raises WorkerLostError."""
        began = time.monotonic()
        short = max(0.0, SHORT_SECONDS - self._computed)
        slow = asyncio.get_running_loop().call_later(short, self._demote)
        try:
            async with asyncio.timeout(seconds):
                message = message_of(
                    await self._read_bytes(length_of(await self._read_bytes(HEAD)))
                )
        except TimeoutError:
            self.outcome = "late"
            raise WorkerLostError(
                f"a worker was silent for {seconds:g} seconds", late=True
            ) from None
        except (OSError, BrokenFrameError) as error:
            self.outcome = "lost"
            raise WorkerLostError(str(error), unheard=not self._heard) from None
        except WorkerLostError:
            self.outcome = "lost"
            raise
        finally:
            slow.cancel()
            self._computed += time.monotonic() - began
        self._heard = True
        if message.get("is") in ("done", "paused", "failed", "unloadable"):
            self.outcome = ended_as(message)
            self.busy_seconds += time.monotonic() - self._since
            self.reusable = message["is"] in ("done", "paused") or message.get("why") in _CLEAN
        return message

    def _demote(self) -> None:
        """Let others go first: this job computes for long. The worker is not used again."""
        self.is_demoted = True
        if self._process.returncode is None:
            demote(self._process.pid)

    def take_outcome(self) -> tuple[str, str]:
        """Return what the job did and how it ended, once."""
        ended = self.job, self.outcome
        self.job = self.outcome = ""
        return ended

    def ask_here(self, job: dict[str, Any], seconds: float) -> dict[str, Any]:
        """Do one job in this thread, which blocks. Raises WorkerLostError."""
        self._socket.settimeout(seconds)
        try:
            self._socket.sendall(frame(job))
        except (OSError, BrokenFrameError) as error:
            raise WorkerLostError(str(error)) from None
        return self.receive_here(seconds)

    def receive_here(self, seconds: float) -> dict[str, Any]:
        """As `receive`, in this thread, which blocks."""
        self._socket.settimeout(seconds)
        try:
            return message_of(self._read_bytes_here(length_of(self._read_bytes_here(HEAD))))
        except TimeoutError:
            raise WorkerLostError(
                f"a worker was silent for {seconds:g} seconds", late=True
            ) from None
        except (OSError, BrokenFrameError) as error:
            raise WorkerLostError(str(error)) from None

    async def _send(self, written: bytes) -> None:
        try:
            await asyncio.get_running_loop().sock_sendall(self._socket, written)
        except OSError as error:
            self.outcome = "lost"
            raise WorkerLostError(str(error), unheard=not self._heard) from None

    async def _read_bytes(self, count: int) -> bytes:
        loop = asyncio.get_running_loop()
        parts = [self._unread]
        have = len(self._unread)
        while have < count:
            part = await loop.sock_recv(self._socket, max(CHUNK, count - have))
            parts.append(self._checked(part))
            have += len(part)
        read = b"".join(parts)
        self._unread = read[count:]
        return read[:count]

    def _read_bytes_here(self, count: int) -> bytes:
        parts = []
        while count:
            part = self._checked(self._socket.recv(min(count, CHUNK)))
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _checked(self, part: bytes) -> bytes:
        if not part:
            raise WorkerLostError("a worker process ended", unheard=not self._heard)
        return part


def _start_worker(user: int) -> tuple["subprocess.Popen[bytes]", socket.socket]:
    """Start a process, and return it with the socket to it. Raises OSError."""
    with ExitStack() as failed:
        own_end, worker_end = socket.socketpair()
        failed.enter_context(own_end)
        with worker_end:
            number = worker_end.fileno()
            process = start(_PROGRAM, number, ROOT, number, user, BINARY)
        failed.pop_all()
    return process, own_end


def start(program: str, descriptor: int, *arguments: object) -> "subprocess.Popen[bytes]":
    """Start an interpreter with a program of ours and its arguments. It inherits one file descriptor and
    no environment, and leads a process group. Raises OSError."""
    return subprocess.Popen(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-I", "-B", "-c", program, *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={},
        pass_fds=(descriptor,),
        start_new_session=True,
    )


def ended_as(message: Mapping[str, Any]) -> str:
    """Return what is counted for the last message of a job."""
    if message["is"] == "failed":
        return _FAILED.get(str(message.get("why")), "crash")
    return "error" if message["is"] == "unloadable" else str(message["is"])
