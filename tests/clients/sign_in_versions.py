"""Which clients of the matrix sign in with a browser, and what each is known to lack of that."""

import json
from collections.abc import Mapping
from typing import Final

from tests.clients.versions import Client, Lack, Login

_INSPECTOR: Final = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
_INSPECTOR_COMMAND: Final = (
    *(_INSPECTOR, "--cli", "--server-url", "{url}", "--transport", "http"),
    *("--format", "json", "-q", "--protocol-era"),
)
_SERVER: Final = {"type": "http", "url": "{url}"}
_GEMINI: Final = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "mcpServers": {"it": {"httpUrl": "{url}"}},
}
_ASKS: Final = "asks the person again"
_NO_REFRESH: Final = Lack(
    ("refresh",),
    "if it is started after the hour of its access token, it asks the person again",
    _ASKS,
)
_NO_REPAIR: Final = Lack(
    ("refresh", "disconnect"),
    "started with a token that has ended, it fails with 401 until its tokens are deleted",
    "Status/401",
)
_KEEPS_NOTHING: Final = Lack(("restart", "refresh"), "asks the person at each start", _ASKS)
_NO_ACCOUNT: Final = (
    Lack(("list",), "connects, but shows its tools only with an account", "missing"),
    Lack(("call",), "needs an account: not tested", "an account is needed"),
)


def _python(version: str, *more: str, revision: str = "") -> Client:
    program = "python_caller.py" if version.startswith("2") else "python1_caller.py"
    packages = (f"mcp=={version}", *more)
    lacks = (_NO_REPAIR if version == "1.9.4" else _NO_REFRESH,)
    return Client("`mcp`", version, program, python=packages, revision=revision, lacks=lacks)


def _typescript(package: str, version: str, revision: str = "") -> Client:
    program = "caller.mjs" if package == "client" else "sdk_caller.mjs"
    name = f"@modelcontextprotocol/{package}"
    return Client(f"`{name}`", version, program, node=(f"{name}@{version}",), revision=revision)


SIGN_INS: Final[Mapping[str, Client]] = {
    "mcp-1.9": _python("1.9.4", "pydantic<2.12"),
    "mcp-1.12": _python("1.12.4", "pydantic<2.12"),
    "mcp-1": _python("1.30.0"),
    "mcp-1-middle": _python("1.30.0", revision="2025-06-18"),
    "mcp-2": _python("2.3.0"),
    "mcp-2-legacy": _python("2.3.0", revision="2025-11-25"),
    "sdk-1": _typescript("sdk", "1.32.2"),
    "sdk-1-middle": _typescript("sdk", "1.32.2", "2025-06-18"),
    "sdk-1-oldest": _typescript("sdk", "1.32.2", "2025-03-26"),
    "client-2": _typescript("client", "2.4.0"),
    "client-2-legacy": _typescript("client", "2.4.0", "2025-11-25"),
    "client-2-middle": _typescript("client", "2.4.0", "2025-06-18"),
    "client-2-oldest": _typescript("client", "2.4.0", "2025-03-26"),
    "mcp-remote": Client(
        "mcp-remote, from `mcp` 1.30.0",
        "0.15.1",
        "python1_caller.py",
        python=("mcp==1.30.0",),
        node=("mcp-remote@0.15.1",),
        command=("mcp-remote/dist/proxy.js", "{url}"),
    ),
    "inspector": Client(
        "Inspector `--cli`",
        "2.12.0",
        "inspector_caller.py",
        node=("@modelcontextprotocol/inspector@2.12.0",),
        command=(*_INSPECTOR_COMMAND, "legacy"),
        lacks=(_KEEPS_NOTHING,),
    ),
    "inspector-modern": Client(
        "Inspector `--cli --protocol-era modern`",
        "2.12.0",
        "inspector_caller.py",
        node=("@modelcontextprotocol/inspector@2.12.0",),
        command=(*_INSPECTOR_COMMAND, "modern"),
        lacks=(_KEEPS_NOTHING,),
    ),
    "claude-code": Client(
        "Claude Code: `claude mcp login`",
        "2.1.332",
        "health_caller.py",
        node=("@anthropic-ai/claude-code@2.1.332",),
        command=("@anthropic-ai/claude-code/cli-wrapper.cjs", "mcp", "list"),
        files={".claude.json": json.dumps({"mcpServers": {"it": _SERVER}})},
        login=Login(("mcp", "login", "it"), (("Authenticated with", ""),)),
        lacks=_NO_ACCOUNT,
    ),
    "codex": Client(
        "Codex: `codex mcp login`",
        "0.171.0",
        "codex_caller.py",
        node=("@openai/codex@0.171.0",),
        command=("@openai/codex/bin/codex.js", "app-server"),
        files={
            ".codex/config.toml": (
                'mcp_oauth_credentials_store = "file"\n[mcp_servers.it]\nurl = "{url}"\n'
            )
        },
        login=Login(("mcp", "login", "it"), (("Successfully logged in", ""),)),
    ),
    "gemini": Client(
        "Gemini CLI: `/mcp auth`",
        "0.61.0",
        "health_caller.py",
        node=("@google/gemini-cli@0.61.0",),
        command=("@google/gemini-cli/bundle/gemini.js", "mcp", "list"),
        files={".gemini/settings.json": json.dumps(_GEMINI)},
        environment={"GEMINI_CLI_TRUST_WORKSPACE": "true", "GEMINI_API_KEY": "no-key"},
        login=Login(
            (),
            (
                ("Type your message", "/mcp auth it"),
                ("/mcp auth it", "\r"),
                ("Do you want to continue?", "\r"),
                ("reloaded tools for 'it'", ""),
            ),
        ),
        lacks=(
            *_NO_ACCOUNT,
            Lack(("refresh",), "`gemini mcp list` does not refresh", "Disconnected"),
        ),
    ),
}
"""By name. Those of `versions.CLIENTS` that are not here send a token only."""
