"""Does a crowd in the database slow one call down? The same server, over a small and a large one."""

import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from bench.peers import MCPHOST, Peer
from bench.processes import ROOT, Command, StartError, running

SEED_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Crowd:
    """How many tenants and tools a database is filled with."""

    tenants: int
    tools: int

    def __str__(self) -> str:
        return f"{self.tenants:,} tenants, {self.tools:,} tools"


CROWD = Crowd(tenants=10_000, tools=100_000)
SMALL_CROWD = Crowd(tenants=100, tools=1_000)


def databases(crowd: Crowd) -> tuple[Peer, Peer]:
    """Our server twice: over the demo alone, and over the demo in a crowd."""

    def crowded(folder: Path, port: int) -> Command:
        command = MCPHOST.command(folder, port)
        with running(command):
            pass  # the first start makes the database and the demo
        _seed(folder / "home", crowd)
        return command

    small = replace(MCPHOST, name="small", label="the demo tenant alone")
    return small, replace(MCPHOST, name="large", label=str(crowd), command=crowded)


def _seed(home: Path, crowd: Crowd) -> None:
    finished = subprocess.run(
        [sys.executable, "-m", "bench.seed", str(crowd.tenants), str(crowd.tools)],
        cwd=ROOT,
        env={**os.environ, "MCPHOST_HOME": str(home), "DJANGO_SETTINGS_MODULE": "mcphost.settings"},
        capture_output=True,
        text=True,
        timeout=SEED_SECONDS,
        check=False,
    )
    if finished.returncode != 0:
        raise StartError(f"the crowd could not be seeded:\n{finished.stderr.strip()}")
