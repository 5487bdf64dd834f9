"""The set-ups of the page *Connect*."""

import shlex

from mcphost.console.tenants.clients import Snippet, setups

URL = "https://mcp.example.com/t/acme/mcp"
TOKEN = "a token's text"


def setup(title: str) -> Snippet:
    return {snippet.title: snippet for snippet in setups("acme", URL, TOKEN)}[title]


def test_codex_reads_the_token_from_its_environment() -> None:
    assign, add = setup("Codex").text.splitlines()
    assert shlex.split(assign) == ["export", f"MCP_TOKEN_ACME={TOKEN}"]
    assert shlex.split(add) == [
        *("codex", "mcp", "add", "acme", "--url", URL),
        *("--bearer-token-env-var", "MCP_TOKEN_ACME"),
    ]


def test_gemini_cli_gets_the_token_in_a_header() -> None:
    assert shlex.split(setup("Gemini CLI").text) == [
        *("gemini", "mcp", "add", "--transport", "http", "acme", URL),
        *("-H", f"Authorization: Bearer {TOKEN}"),
    ]


def test_the_setup_for_claude_ai_names_the_required_plan_and_the_header() -> None:
    snippet = setup("claude.ai")
    assert "beta" in snippet.where and "some plans" in snippet.where
    assert URL in snippet.text and f"Authorization: Bearer {TOKEN}" in snippet.text


def test_the_inspector_needs_a_version_of_node() -> None:
    assert "Node 22" in setup("MCP Inspector").where


def test_the_name_of_a_variable_has_only_shell_safe_characters() -> None:
    (assign, _) = next(
        snippet.text.splitlines() for snippet in setups("a-b", URL, "x") if snippet.title == "Codex"
    )
    assert assign == "export MCP_TOKEN_A_B=x"
