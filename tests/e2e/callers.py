"""Which clients there are that call what they are told to, and how to start each."""

import sys
from pathlib import Path

from bench.environment import fastmcp_python, python_with
from tests.e2e.node_client import FOLDER, NODE

CLIENTS = Path(__file__).parent / "clients"
MODERN = ("python", "typescript", "fastmcp")


def command(name: str) -> list[str]:
    """How to start a client, whose environment is made now if need be; those of Node are installed."""
    if name in ("typescript", "sdk"):
        return [
            str(NODE),
            str(FOLDER / {"typescript": "caller.mjs", "sdk": "sdk_caller.mjs"}[name]),
        ]
    if name == "fastmcp":
        return [str(fastmcp_python()), str(CLIENTS / "fastmcp_caller.py")]
    if name == "python":
        return [sys.executable, str(CLIENTS / "python_caller.py")]
    python = python_with(CLIENTS / f"{name}.lock", f"e2e-{name}")
    return [str(python), str(CLIENTS / "python1_caller.py")]
