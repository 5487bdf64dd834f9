"""The set-ups of the page *Connect*."""

import json
import shlex

from mcphost.console.tenants.clients import Setup, Snippet, curl, setups
from mcphost.protocol.schemas import param_headers

URL = "https://mcp.example.com/t/acme/mcp"
TOKEN = "a token's text"


def setup(title: str) -> Setup:
    return {setup.title: setup for setup in setups("acme", URL, TOKEN)}[title]


def with_token(title: str) -> Snippet:
    snippet = setup(title).token
    assert snippet is not None
    return snippet


def sign_in(title: str) -> Snippet:
    snippet = setup(title).sign_in
    assert snippet is not None
    return snippet


def test_no_snippet_for_signing_in_has_a_token() -> None:
    sign_ins = [setup.sign_in for setup in setups("acme", URL, TOKEN) if setup.sign_in is not None]
    assert len(sign_ins) == 12
    for snippet in sign_ins:
        assert URL in snippet.text
        assert snippet.then
        for secret in (TOKEN, "Bearer", "YOUR_TOKEN"):
            assert secret not in snippet.text


def test_curl_only_takes_a_token_and_chatgpt_only_signs_in() -> None:
    assert [setup.title for setup in setups("acme", URL) if setup.sign_in is None] == ["curl"]
    assert [setup.title for setup in setups("acme", URL) if setup.token is None] == ["ChatGPT"]


def test_command_line_clients_add_the_server_and_then_sign_in() -> None:
    claude = ["claude", "mcp", "add", "--transport", "http", "acme", URL]
    assert shlex.split(sign_in("Claude Code").text) == claude
    assert "claude mcp login acme" in sign_in("Claude Code").then
    # It signs in at once when the server is added.
    assert shlex.split(sign_in("Codex").text) == ["codex", "mcp", "add", "acme", "--url", URL]
    assert "codex mcp login acme" in sign_in("Codex").then
    gemini = ["gemini", "mcp", "add", "--transport", "http", "acme", URL]
    assert shlex.split(sign_in("Gemini CLI").text) == gemini
    assert "/mcp auth acme" in sign_in("Gemini CLI").then


def test_editors_need_only_the_address() -> None:
    command, option, server = shlex.split(sign_in("VS Code").text)
    assert (command, option) == ("code", "--add-mcp")
    assert json.loads(server) == {"name": "acme", "type": "http", "url": URL}
    assert json.loads(sign_in("Cursor").text) == {"mcpServers": {"acme": {"url": URL}}}
    assert json.loads(sign_in("Windsurf").text) == {"mcpServers": {"acme": {"serverUrl": URL}}}
    remote = {"command": "npx", "args": ["-y", "mcp-remote", URL]}
    assert json.loads(sign_in("Claude Desktop").text) == {"mcpServers": {"acme": remote}}


def test_clients_on_the_web_must_reach_the_address() -> None:
    for title in ("claude.ai", "ChatGPT"):
        assert "reachable from the internet" in sign_in(title).then


def test_codex_reads_the_token_from_its_environment() -> None:
    assign, add = with_token("Codex").text.splitlines()
    assert shlex.split(assign) == ["export", f"MCP_TOKEN_ACME={TOKEN}"]
    assert shlex.split(add) == [
        *("codex", "mcp", "add", "acme", "--url", URL),
        *("--bearer-token-env-var", "MCP_TOKEN_ACME"),
    ]


def test_gemini_cli_gets_the_token_in_a_header() -> None:
    assert shlex.split(with_token("Gemini CLI").text) == [
        *("gemini", "mcp", "add", "--transport", "http", "acme", URL),
        *("-H", f"Authorization: Bearer {TOKEN}"),
    ]


def test_the_setup_for_claude_ai_names_the_required_plan_and_the_header() -> None:
    snippet = with_token("claude.ai")
    assert "beta" in snippet.where and "some plans" in snippet.where
    assert URL in snippet.text and f"Authorization: Bearer {TOKEN}" in snippet.text


def test_the_inspector_needs_a_version_of_node() -> None:
    assert "Node 22" in with_token("MCP Inspector").where
    assert "Node 22" in sign_in("MCP Inspector").where


def test_the_name_of_a_variable_has_only_shell_safe_characters() -> None:
    codex = {setup.title: setup.token for setup in setups("a-b", URL, "x")}["Codex"]
    assert codex is not None
    assert codex.text.splitlines()[0] == "export MCP_TOKEN_A_B=x"


def test_a_command_declares_all_capabilities_and_encodes_its_headers() -> None:
    schema = {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    }
    params = {"name": "größe", "arguments": {"region": "Köln"}}
    words = shlex.split(curl(URL, "tools/call", "größe", params, param_headers(schema)))
    headers = dict(
        words[index + 1].split(": ", 1) for index, word in enumerate(words) if word == "-H"
    )
    assert headers["Mcp-Name"] == "=?base64?Z3LDtsOfZQ==?="
    assert headers["Mcp-Param-Region"] == "=?base64?S8O2bG4=?="
    body = json.loads(words[words.index("-d") + 1])
    declared = body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
    assert declared == {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
    assert body["params"]["arguments"] == {"region": "Köln"}
