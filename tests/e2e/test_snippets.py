"""The snippets of the page "Connect", run by a shell and by programs of the real clients."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from mcphost.console.tenants import clients
from tests.e2e.node_client import FOLDER, NODE, NodeClient
from tests.e2e.processes import Server

SAID = "it's said"
SECONDS = 60
INSPECTOR = FOLDER / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"


@pytest.fixture
def pasted(server: Server) -> dict[str, str]:
    called = clients.ExampleCall("echo", {"text": SAID})
    setups = clients.setups("demo", server.url, server.token, called)
    return {each.title: each.text for each in setups}


def printed(*words: str, folder: Path) -> str:
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_curl_snippet_calls_the_tool(pasted: dict[str, str], tmp_path: Path) -> None:
    assert SAID in printed("bash", "-c", pasted["curl"], folder=tmp_path)


def test_the_python_sdk_snippet_lists_and_calls(pasted: dict[str, str], tmp_path: Path) -> None:
    program = tmp_path / "connect.py"
    program.write_text(pasted["Python"])
    text = printed(sys.executable, str(program), folder=tmp_path)
    assert "add" in text.splitlines()[0].split()
    assert SAID in text


def test_the_typescript_sdk_snippet_lists_and_calls(
    pasted: dict[str, str], node: NodeClient
) -> None:
    program = node.folder / "connect-snippet.mjs"
    program.write_text(pasted["TypeScript"])
    text = printed(str(NODE), program.name, folder=node.folder)
    assert "add" in text.splitlines()[0].split()
    assert SAID in text


def test_the_inspector_snippet_lists_tools(
    pasted: dict[str, str], node: NodeClient, tmp_path: Path
) -> None:
    words = shlex.split(pasted["MCP Inspector"])
    assert words[:2] == ["npx", "@modelcontextprotocol/inspector"]
    text = printed(str(NODE), str(INSPECTOR), *words[2:], folder=tmp_path)
    assert '"add"' in text
