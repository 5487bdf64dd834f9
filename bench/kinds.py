"""The same tool in each kind, in one server: a Python function, a script, and a request to a service on
loopback; and a tool that asks once, as a function and as a script."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bench import asking, passes, peers
from bench.figures import Figure, summarise
from bench.load import Target
from bench.passes import Plan
from bench.peers import Peer, Served, serving
from bench.processes import ROOT, Command, StartError, free_port, running
from bench.verify import verify

PUBLISH_SECONDS = 120
ECHO = "echo"
SCRIPT = "script"
LABELS: Mapping[str, str] = {
    ECHO: "Python function",
    SCRIPT: "script",
    "http": "HTTP tool",
    "ask": "Python function that asks once",
    "ask-script": "script that asks once",
}


def compare_each(plan: Plan, connections: Sequence[int]) -> dict[int, tuple[Figure, ...]]:
    """Load the tools of one server in turn: figures per number of connections, in the order of LABELS."""
    with tempfile.TemporaryDirectory(prefix="mcphost-bench-") as name:
        folder, service = Path(name), free_port()
        peer = Peer(
            "kinds",
            "mcphost",
            lambda data_folder, port: _server_command(data_folder, port, service),
            _target,
        )
        echoing = peers.script("echo_service.py")(folder, service)
        with (
            running(replace(echoing, log=folder / "service.log")),
            serving(peer, folder / "server") as served,
        ):
            tools = {name: replace(served, target=_of(served, name)) for name in LABELS}
            for tool in tools.values():
                verify(tool.target)
            samples_by_count = passes.take_turns(tools, plan, connections)
    return {count: summarise(LABELS, samples) for count, samples in samples_by_count.items()}


def _of(served: Served, name: str) -> Target:
    """Where the tool is called that has this row."""
    named = name.replace("-", "_")
    if name.startswith("ask"):
        return replace(served.target, asks=named)
    return replace(served.target, tool=ECHO if name == ECHO else f"{ECHO}_{named}")


def _target(folder: Path, port: int) -> Target:
    return peers.MCPHOST.target(folder, port)


def _server_command(folder: Path, port: int, service: int) -> Command:
    tools = {"MCPHOST_TOOLS_PATH": str(asking.TOOLS)}
    command = peers.mcphost_command(
        folder, port, MCPHOST_EGRESS_LOOPBACK_PORTS=str(service), **tools
    )
    with running(command):
        pass  # the first start makes the database and the demo
    finished = subprocess.run(
        [sys.executable, "-m", "bench.publish", str(service)],
        cwd=ROOT,
        env={**os.environ, **command.env, "DJANGO_SETTINGS_MODULE": "mcphost.settings"},
        capture_output=True,
        text=True,
        timeout=PUBLISH_SECONDS,
        check=False,
    )
    if finished.returncode != 0:
        raise StartError(f"the tools could not be published:\n{finished.stderr.strip()}")
    return command
