"""The snippets of the page "Connect", run by a shell and by programs of the real clients."""

import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from mcphost.console.tenants import clients
from mcphost.console.tenants.client_programs import ExampleCall
from tests.e2e.admin import Admin
from tests.e2e.node_client import FOLDER, NODE, NodeClient
from tests.e2e.processes import Server

SAID = "it's said"
STAYS = f"{SAID} stays as it is."
SECONDS = 60
INSPECTOR = FOLDER / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"


def setups(server: Server) -> tuple[clients.Setup, ...]:
    return clients.setups("demo", server.url, server.token, ExampleCall("echo", {"text": SAID}))


@pytest.fixture
def pasted(server: Server) -> dict[str, str]:
    return {each.title: each.token.text for each in setups(server) if each.token}


@pytest.fixture
def signing_in(server: Server) -> dict[str, str]:
    return {each.title: each.sign_in.text for each in setups(server) if each.sign_in}


def printed(*words: str, folder: Path) -> str:
    done = subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def copied(server: Server, revision: str) -> dict[str, str]:
    """The programs that make a call which asks, as Try it shows them."""
    called = ExampleCall(
        "deploy",
        {"service": SAID, "version": "1"},
        responses=[{"action": "accept", "content": {"deploy": False}}],
        revision=revision,
        capabilities={"elicitation": {"form": {}}},
    )
    return {
        program.title: program.text.replace(clients.STAND_IN, server.token)
        for program in clients.calling_programs(server.url, called)
    }


REVISIONS = ("2026-07-28", "2025-11-25", "2025-06-18")


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_copied_curl_command_makes_the_call_of_its_revision(
    server: Server, tmp_path: Path, revision: str
) -> None:
    # In a session the input request keeps the stream open.
    text = copied(server, revision)["curl"].replace("  -d '", "  -m 5 -d '")
    done = subprocess.run(
        ["bash", "-c", text],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert "elicitation/create" in done.stdout


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_copied_python_program_answers_what_the_tool_asks(
    server: Server, tmp_path: Path, revision: str
) -> None:
    program = tmp_path / "call.py"
    program.write_text(copied(server, revision)["Python"])
    assert STAYS in printed(sys.executable, str(program), folder=tmp_path)


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_copied_typescript_program_answers_what_the_tool_asks(
    server: Server, node: NodeClient, revision: str
) -> None:
    program = node.folder / "call-snippet.mjs"
    program.write_text(copied(server, revision)["TypeScript"])
    assert STAYS in printed(str(NODE), program.name, folder=node.folder)


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


class Person:
    """A person who opens the address that a client prints, signs in and allows it."""

    def __init__(self, server: Server) -> None:
        password = (server.home / "admin-password").read_text().strip()
        self._admin = Admin(server.port, password)

    def allow(self, address: str) -> None:
        parts = urlsplit(address)
        path = f"{parts.path}?{parts.query}"
        membership = self._admin.get(path).partition('name="tenant" value="')[2].partition('"')[0]
        self._admin.post(path, _allow="1", tenant=membership)
        with urlopen(self._admin.location, timeout=SECONDS) as back:
            assert back.status == 200


@contextmanager
def ended_in_time(process: "subprocess.Popen[str]") -> Iterator[None]:
    timer = threading.Timer(SECONDS, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        process.kill()
        process.communicate()


def printed_after_signing_in(server: Server, *words: str, folder: Path) -> str:
    """What a program prints to which a person signs in, at the address that it prints first."""
    # No browser of this machine is opened.
    environment = {**os.environ, "BROWSER": "true", "HOME": str(folder), "PYTHONUNBUFFERED": "1"}
    # The Inspector signs in only at a terminal, or where it may open a browser.
    environment |= {"MCP_INSPECTOR_SECRET_STORE": "memory", "MCP_AUTO_OPEN_ENABLED": "true"}
    process = subprocess.Popen(
        words,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    with ended_in_time(process):
        before: list[str] = []
        address = None
        while address is None and (line := process.stdout.readline()):
            before.append(line)
            address = re.search(rf"{re.escape(server.base)}/authorize\?\S+", line)
        assert address is not None, before
        Person(server).allow(address[0])
        after = process.stdout.read()
        assert process.wait(SECONDS) == 0, after
    return after


def test_the_python_sdk_snippet_signs_in_lists_and_calls(
    server: Server, signing_in: dict[str, str], tmp_path: Path
) -> None:
    program = tmp_path / "connect.py"
    program.write_text(signing_in["Python"])
    text = printed_after_signing_in(server, sys.executable, str(program), folder=tmp_path)
    assert "add" in text.splitlines()[0].split()
    assert SAID in text


def test_the_typescript_sdk_snippet_signs_in_lists_and_calls(
    server: Server, signing_in: dict[str, str], node: NodeClient
) -> None:
    program = node.folder / "connect-signing-in.mjs"
    program.write_text(signing_in["TypeScript"])
    text = printed_after_signing_in(server, str(NODE), program.name, folder=node.folder)
    assert "add" in text.splitlines()[0].split()
    assert SAID in text


def test_the_inspector_snippet_signs_in_and_lists_tools(
    server: Server, signing_in: dict[str, str], node: NodeClient, tmp_path: Path
) -> None:
    words = shlex.split(signing_in["MCP Inspector"])
    command = (str(NODE), str(INSPECTOR), *words[2:])
    assert '"add"' in printed_after_signing_in(server, *command, folder=tmp_path)
