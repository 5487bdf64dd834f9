"""The `curl` command of a call's page, run in a shell: it returns the result of the call."""

import os
import re
import subprocess
from html import unescape
from typing import Any

import pytest

from tests.e2e import raw, raw_sessions
from tests.e2e.admin import Admin
from tests.e2e.processes import Server

SECONDS = 60
SAID = "it's \"said\" for $HOME and `x`; ü\u202e\\ \n'"
ARGUMENTS = '{"text": "given by the reader"}'


@pytest.fixture
def auditor(server: Server) -> Admin:
    password = (server.home / "auditor-password").read_text().strip()
    return Admin(server.port, password, "auditor")


def command(auditor: Admin, query: str, tail: str) -> str:
    listed = auditor.get(f"/admin/t/demo/calls/?{query}")
    found = re.search(r'href="(/admin/t/demo/calls/[0-9a-f-]{36}/)"', listed)
    assert found
    page = auditor.get(f"{found[1]}{tail}")
    copied = re.search(r"<pre[^>]*><code>(curl .*?|MCP_SESSION=.*?)</code></pre>", page, re.DOTALL)
    assert copied
    return unescape(copied[1])


def run(server: Server, text: str) -> Any:
    env = {**os.environ, "MCP_TOKEN": server.token, "ARGUMENTS": ARGUMENTS}
    done = subprocess.run(
        ["bash", "-c", text], env=env, capture_output=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    out = done.stdout
    kind = "application/json" if out.startswith(b"{") else "text/event-stream"
    return raw.last_message(kind, out)["result"]


def called(server: Server, message: dict[str, Any]) -> Any:
    reply = raw.post(server, message, server.token)
    assert reply.status == 200, reply
    return reply.message["result"]


def test_the_curl_command_repeats_a_call_with_its_arguments(server: Server, auditor: Admin) -> None:
    result = called(server, raw.call("echo", {"text": SAID}))
    text = command(auditor, "tool=echo", "payloads/")
    assert server.token not in text
    assert text.isascii()
    assert run(server, text) == result


def test_the_curl_command_without_payloads_takes_arguments_from_the_reader(
    server: Server, auditor: Admin
) -> None:
    called(server, raw.call("echo", {"text": SAID}))
    text = command(auditor, "tool=echo", "")
    assert "said" not in text
    assert run(server, text) == called(server, raw.call("echo", {"text": "given by the reader"}))


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-11-25"])
def test_the_curl_command_of_a_session_call_begins_a_new_session(
    server: Server, auditor: Admin, revision: str
) -> None:
    session = raw_sessions.begin(server, revision)
    result = session.ask("tools/call", name="echo", arguments={"text": SAID})
    text = command(auditor, "client=by+hand", "payloads/")
    assert "initialize" in text
    assert session.id not in text
    assert run(server, text) == result


def test_the_command_on_the_page_of_a_tool_reaches_tools_that_ask_and_that_want_headers(
    server: Server,
) -> None:
    """Each tool of the tenant is called as its page shows: none refuses for what the command lacks."""
    owner = Admin(server.port, (server.home / "admin-password").read_text().strip())
    listed = owner.get("/admin/t/demo/tools/")
    pages = set(re.findall(r'href="(/admin/t/demo/tools/[0-9a-f-]{36}/)"', listed))
    results = {}
    for page in pages:
        shown = re.search(r"<pre[^>]*><code>(curl .*?)</code></pre>", owner.get(page), re.DOTALL)
        assert shown, page
        text = unescape(shown[1])
        assert text.isascii()
        (name,) = re.findall(r"Mcp-Name: (\w+)", text)
        results[name] = run(server, text.replace("YOUR_TOKEN", server.token))
    asking = [name for name, result in results.items() if result["resultType"] == "input_required"]
    assert "echo" in results and asking
