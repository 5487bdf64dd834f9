"""Which clients there are that call what they are told to, and how to start each."""

import sys
from pathlib import Path

from bench.environment import fastmcp_python, python_with
from tests.e2e.node_client import FOLDER, NODE

CLIENTS = Path(__file__).parent / "clients"
PROGRAMS = {
    "typescript": "caller.mjs",
    "sdk": "sdk_caller.mjs",
    "sdk-tasks": "sdk_tasks_caller.mjs",
}
"""The programs of the clients of Node."""
MODERN = ("python", "typescript", "fastmcp")


def command(name: str) -> list[str]:
    """How to start a client, whose environment is made now if need be; those of Node are installed."""
    if name in PROGRAMS:
        return [str(NODE), str(FOLDER / PROGRAMS[name])]
    if name == "fastmcp":
        return [str(fastmcp_python()), str(CLIENTS / "fastmcp_caller.py")]
    if name == "fastmcp-tasks":
        python = python_with(CLIENTS / f"{name}.lock", f"e2e-{name}")
        return [str(python), str(CLIENTS / "fastmcp_tasks_caller.py")]
    if name == "mcp-tasks":
        python = python_with(CLIENTS / "mcp-1.30.0.lock", "e2e-mcp-1.30.0")
        return [str(python), str(CLIENTS / "python1_tasks_caller.py")]
    if name == "python":
        return [sys.executable, str(CLIENTS / "python_caller.py")]
    python = python_with(CLIENTS / f"{name}.lock", f"e2e-{name}")
    return [str(python), str(CLIENTS / "python1_caller.py")]
