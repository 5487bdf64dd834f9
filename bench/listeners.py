"""How soon does everybody hear of a change? Many listeners on one worker, and one change at a time."""

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench import peers
from bench.proc import memory_bytes
from bench.processes import ROOT, StartError, free_port, running

CROWD, SMALL_CROWD = 10_000, 200
CHANGES, FEW_CHANGES = 6, 2
PATIENCE = 180
SPARE = 200


@dataclass(frozen=True, slots=True)
class Heard:
    """One change: how many seconds after it began the first and the last listener were told."""

    first: float
    last: float


@dataclass(frozen=True, slots=True)
class ListenersFigure:
    """What listeners cost. Seconds; bytes of the server's memory per listener."""

    listeners: int
    changes: int
    first: float
    last: float
    worst: float
    memory: float


class Lines:
    """A program of this folder that is told a line and answers with one, within PATIENCE."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def ask(self, line: str = "") -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self.next()

    def next(self) -> str:
        assert self._process.stdout is not None
        late = threading.Timer(PATIENCE, self._process.kill)
        late.start()
        try:
            line = self._process.stdout.readline()
        finally:
            late.cancel()
        if not line:
            raise StartError(f"{self._process.args!r} ended without an answer")
        return line


def listen(count: int, changes: int) -> ListenersFigure:
    """Have `count` listeners hear of that many changes, one after another."""
    make_room(count + SPARE)
    with tempfile.TemporaryDirectory(prefix="mcphost-bench-") as folder:
        data_folder, port = Path(folder), free_port()
        room = str(count)
        limits = {"MCPHOST_LISTENERS_PER_TOKEN": room, "MCPHOST_LISTENERS_PER_TENANT": room}
        with running(peers.mcphost_command(data_folder, port, **limits)) as pid:
            target = peers.MCPHOST.target(data_folder, port)
            alone = memory_bytes(pid)
            with (
                program("bench.ears", port, count, BENCH_TOKEN=target.token) as ears,
                program(
                    "bench.change", changes, MCPHOST_HOME=str(data_folder / "home")
                ) as changing,
            ):
                json.loads(ears.next())
                memory = (memory_bytes(pid) - alone) / count
                heard = [_change(ears, changing) for _ in range(changes)]
    return summarise(count, heard, memory)


def summarise(count: int, heard: Sequence[Heard], memory: float) -> ListenersFigure:
    return ListenersFigure(
        listeners=count,
        changes=len(heard),
        first=median(notice.first for notice in heard),
        last=median(notice.last for notice in heard),
        worst=max(notice.last for notice in heard),
        memory=memory,
    )


def make_room(files: int) -> None:
    """Let the programs started from now on have so many open files. Raises StartError."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < files:
        raise StartError(f"a process may open {hard} files here, not {files}: raise `ulimit -Hn`")
    if soft != resource.RLIM_INFINITY and soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))


def _change(ears: Lines, changing: Lines) -> Heard:
    began = float(changing.ask())
    moments = json.loads(ears.next())
    heard = Heard(moments["first"] - began, moments["last"] - began)
    print(f"first heard after {heard.first:.3f} s, all after {heard.last:.3f} s", flush=True)
    return heard


@contextmanager
def program(module: str, *arguments: int | str, **more: str) -> Iterator[Lines]:
    """Another of this folder's programs, while in here."""
    process = subprocess.Popen(
        [sys.executable, "-m", module, *map(str, arguments)],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "mcphost.settings", **more},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield Lines(process)
        finally:
            process.kill()
