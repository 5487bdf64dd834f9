"""The client programs of docs/tasks.md, as they are written there."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.e2e.callers import command
from tests.e2e.node_client import FOLDER
from tests.e2e.processes import ROOT
from tests.e2e.test_task_clients import Place, place

__all__ = ["place"]

PAGE = (ROOT / "docs" / "tasks.md").read_text()
PROGRAM = re.compile(r"^```(python|javascript)\n(.*?)^```", re.MULTILINE | re.DOTALL)
CLIENTS = ("fastmcp-tasks", "mcp-tasks", "sdk-tasks")
"""The clients of the programs, in the order of the page."""
SECONDS = 60


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("number", range(len(CLIENTS)), ids=CLIENTS)
def test_a_documented_client_gets_the_result_of_its_task(
    place: Place, tmp_path: Path, number: int
) -> None:
    programs = PROGRAM.findall(PAGE)
    assert len(programs) == len(CLIENTS)
    language, text = programs[number]
    folder = tmp_path if language == "python" else FOLDER  # Node looks for packages beside it
    file = folder / f"documented{'.py' if language == 'python' else '.mjs'}"
    with place.life() as server:
        assert "https://mcp.example.com/t/acme/mcp" in text
        text = text.replace("https://mcp.example.com/t/acme/mcp", server.url)
        file.write_text(text.replace("TOKEN", server.token))
        run = [command(CLIENTS[number])[0], str(file)]
        done = subprocess.run(
            run, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=folder
        )
    assert (done.returncode, done.stdout) == (0, "the door is red\n"), done.stderr
