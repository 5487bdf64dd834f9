"""Modules that a ready serving process has not imported: each would slow down every start."""

import subprocess
import sys

import pytest

SERVING = """
import asyncio, sys
from mcphost.asgi import application

async def ready():
    scope = {"type": "http", "method": "GET", "path": "/healthz", "headers": [], "query_string": b""}
    sent = []
    async def send(message):
        sent.append(message)
    await application(scope, None, send)
    return sent[0]["status"]

assert asyncio.run(ready()) == 200
print(*sorted(sys.modules), sep="\\n")
"""
NOT_LOADED = (
    "mcp_types.methods",  # the models of all revisions: serving/first_use.py
    "mcphost.console.urls",  # the pages, and all of their views
    "mcphost.console.live.routing",
    "openapi_spec_validator",
    "opentelemetry",  # unless traces are sent
)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """The modules of a process that serves, and has answered a probe."""
    home = tmp_path_factory.mktemp("home")
    environment = {"MCPHOST_HOME": str(home), "DATABASE_URL": f"sqlite:///{home}/db.sqlite3"}
    setup = [sys.executable, "manage.py", "init"]
    for command in (setup, [sys.executable, "-c", SERVING]):
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
    return frozenset(done.stdout.split())


@pytest.mark.parametrize("module", NOT_LOADED)
def test_a_ready_process_has_not_imported_modules_it_does_not_need(
    module: str, loaded: frozenset[str]
) -> None:
    assert "mcphost.transport.endpoint" in loaded
    assert module not in loaded
