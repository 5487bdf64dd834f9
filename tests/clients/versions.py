"""Which clients the matrix has, in which versions, and what each is known to lack."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True)
class Lack:
    """Steps that a client cannot do, and why. What comes of them must contain `symptom`."""

    steps: tuple[str, ...]
    reason: str
    symptom: str = ""


@dataclass(frozen=True)
class Login:
    """How a person signs a client in, if it does not open the browser when it connects: the arguments of its
    command, and what is shown and typed in the terminal."""

    arguments: tuple[str, ...]
    lines: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Client:
    """A client, and the program of tests/e2e that drives it.

    `python` and `node` are the packages of its environments. `command` is what the program starts, if it is
    no library: a script under `node_modules` and its arguments, in which `{url}` and `{token}` are replaced, as in
    `files`, its configuration below the home folder.
    """

    title: str
    version: str
    program: str
    python: tuple[str, ...] = ()
    node: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    revision: str = ""
    lacks: tuple[Lack, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    login: Login | None = None


_CAPABILITY: Final = "needs a client with the capability 'elicitation.form'"
_NO_FORMS: Final = Lack(
    ("question",), "no elicitation: the call ends with an error that says so", _CAPABILITY
)
_NO_PROGRESS: Final = Lack(("progress",), "asks for no progress", "no progress")
_INSPECTOR_PRINTS: Final = Lack(
    ("progress", "log"), "prints the result only: no progress, no log messages", "no "
)
_SUPERGATEWAY: Final = (
    Lack(("question",), "passes no requests of the server on", "Method not found"),
    Lack(("progress", "log"), "passes no notifications of the server on", "no "),
)
_PYDANTIC: Final = "pydantic<2.12"  # later ones have not got what these versions of mcp import
_BEARER: Final = "Authorization: Bearer {token}"
_INSPECTOR: Final = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
_INSPECTOR_COMMAND: Final = (
    *(_INSPECTOR, "--cli", "--server-url", "{url}", "--transport", "http", "--header", _BEARER),
    *("--format", "json", "-q", "--protocol-era"),
)
_REMOTE: Final = ("mcp-remote/dist/proxy.js", "{url}", "--header", _BEARER)
_GATEWAY: Final = (
    *("supergateway/dist/index.js", "--streamableHttp", "{url}", "--oauth2Bearer", "{token}"),
    *("--logLevel", "none"),
)
_CODEX: Final = (
    *("@openai/codex/bin/codex.js", "-c", 'mcp_servers.it.url="{url}"'),
    *("-c", 'mcp_servers.it.bearer_token_env_var="MCPHOST_TOKEN"', "app-server"),
)

CLIENTS: Final[Mapping[str, Client]] = {
    "mcp-1.6": Client(
        "`mcp` through mcp-remote 0.15.1",
        "1.6.0",
        "python1_caller.py",
        python=("mcp==1.6.0", _PYDANTIC),
        node=("mcp-remote@0.15.1",),
        command=_REMOTE,
        lacks=(_NO_FORMS, _NO_PROGRESS),
    ),
    "mcp-1.9": Client(
        "`mcp`",
        "1.9.4",
        "python1_caller.py",
        python=("mcp==1.9.4", _PYDANTIC),
        lacks=(_NO_FORMS,),
    ),
    "mcp-1.12": Client("`mcp`", "1.12.4", "python1_caller.py", python=("mcp==1.12.4", _PYDANTIC)),
    "mcp-1": Client("`mcp`", "1.30.0", "python1_caller.py", python=("mcp==1.30.0",)),
    "mcp-2": Client("`mcp`", "2.3.0", "python_caller.py", python=("mcp==2.3.0",)),
    "mcp-2-legacy": Client(
        '`mcp` with `mode="legacy"`',
        "2.3.0",
        "python_caller.py",
        python=("mcp==2.3.0",),
        revision="2025-11-25",
    ),
    "fastmcp-2": Client("FastMCP", "2.14.7", "fastmcp_caller.py", python=("fastmcp==2.14.7",)),
    "fastmcp-3": Client("FastMCP", "3.4.11", "fastmcp_caller.py", python=("fastmcp==3.4.11",)),
    "fastmcp-4": Client("FastMCP", "4.2.3", "fastmcp_caller.py", python=("fastmcp==4.2.3",)),
    "sdk-1.10": Client(
        "`@modelcontextprotocol/sdk`",
        "1.10.2",
        "sdk_caller.mjs",
        node=("@modelcontextprotocol/sdk@1.10.2",),
        lacks=(_NO_FORMS,),
    ),
    "sdk-1": Client(
        "`@modelcontextprotocol/sdk`",
        "1.32.2",
        "sdk_caller.mjs",
        node=("@modelcontextprotocol/sdk@1.32.2",),
    ),
    "client-2": Client(
        "`@modelcontextprotocol/client` with `versionNegotiation`",
        "2.4.0",
        "caller.mjs",
        node=("@modelcontextprotocol/client@2.4.0",),
    ),
    "client-2-legacy": Client(
        "`@modelcontextprotocol/client`",
        "2.4.0",
        "caller.mjs",
        node=("@modelcontextprotocol/client@2.4.0",),
        revision="2025-11-25",
    ),
    "inspector": Client(
        "Inspector `--cli`",
        "2.12.0",
        "inspector_caller.py",
        node=("@modelcontextprotocol/inspector@2.12.0",),
        command=(*_INSPECTOR_COMMAND, "legacy"),
        lacks=(_NO_FORMS, _INSPECTOR_PRINTS),
    ),
    "inspector-modern": Client(
        "Inspector `--cli --protocol-era modern`",
        "2.12.0",
        "inspector_caller.py",
        node=("@modelcontextprotocol/inspector@2.12.0",),
        command=(*_INSPECTOR_COMMAND, "modern"),
        lacks=(_NO_FORMS, _INSPECTOR_PRINTS),
    ),
    "mcp-remote": Client(
        "mcp-remote, from `mcp` 1.30.0",
        "0.15.1",
        "python1_caller.py",
        python=("mcp==1.30.0",),
        node=("mcp-remote@0.15.1",),
        command=_REMOTE,
    ),
    "supergateway": Client(
        "supergateway, from `mcp` 1.30.0",
        "4.0.0",
        "python1_caller.py",
        python=("mcp==1.30.0",),
        node=("supergateway@4.0.0",),
        command=_GATEWAY,
        lacks=_SUPERGATEWAY,
    ),
    "langchain": Client(
        "LangChain's MCP adapters",
        "0.3.2",
        "langchain_caller.py",
        python=("langchain-mcp-adapters==0.3.2",),
    ),
    "pydantic-ai": Client(
        "Pydantic AI",
        "2.68.0",
        "pydantic_ai_caller.py",
        python=("pydantic-ai-slim[mcp]==2.68.0",),
    ),
    "openai-agents": Client(
        "OpenAI Agents (Python)",
        "0.24.0",
        "openai_agents_caller.py",
        python=("openai-agents==0.24.0",),
        lacks=(
            _NO_FORMS,
            _NO_PROGRESS,
            Lack(("log",), "asks for no log messages", "no log message"),
        ),
    ),
    "codex": Client(
        "Codex, through its `app-server`",
        "0.171.0",
        "codex_caller.py",
        node=("@openai/codex@0.171.0",),
        command=_CODEX,
        lacks=(
            Lack(("prompt",), "has no prompts", "NotImplementedError"),
            Lack(("progress", "log"), "shows them in a turn of its model only", "no "),
        ),
    ),
    "gemini": Client(
        "Gemini CLI",
        "0.61.0",
        "gemini_caller.py",
        node=("@google/gemini-cli@0.61.0",),
        command=("@google/gemini-cli/bundle/gemini.js",),
        lacks=(
            Lack(("list",), "connects; all else needs an account, and was not tested", "missing"),
            Lack(
                ("call", "question", "resource", "prompt", "error"),
                "needs an account: not tested",
                "an account is needed",
            ),
            Lack(("progress", "log"), "needs an account: not tested", "no "),
        ),
    ),
}
