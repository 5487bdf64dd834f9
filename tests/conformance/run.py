"""`python -m tests.conformance.run`: the conformance suite against servers of its own.

First against one, started as `make up` does over a throw-away data folder; then against two nodes
of one service, with PostgreSQL and Redis, behind a round-robin proxy. Each has the public tenant
`conformance`, and is warmed, because the suite's first scenario gives it half a second. Every
revision that the suite knows is run, then its scenarios for authorization servers, in which a scripted
person signs in. Every check is judged (see verdict.py); the checks stay in build/conformance/out.
Exit 0 or 1.
"""

import json
import os
import shutil
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.conformance import sign_in, suite, verdict
from tests.e2e import nodes, shared_services
from tests.e2e.processes import Server, serving

OUTPUT = suite.FOLDER / "out"
REVISION = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
NODES = 2
SETTINGS: dict[str, Any] = {"MCPHOST_CONFORMANCE": "1"}

Start = Callable[[Path], AbstractContextManager[Server]]


def main() -> int:
    try:
        suite.install()
    except suite.SuiteError as error:
        print(f"the suite could not be installed: {error}", file=sys.stderr)
        return 1
    good = _run("one process", _one, OUTPUT / "one")
    if reason := shared_services.missing():
        print(f"NOT RUN AGAINST TWO NODES: {reason}", file=sys.stderr)
        return 0 if good and not os.environ.get("CI") else 1
    return 0 if _run("two nodes", _two, OUTPUT / "two") and good else 1


def _run(what: str, start: Start, output: Path) -> bool:
    """Run the suite and tell what was found; whether that is what was expected."""
    shutil.rmtree(output, ignore_errors=True)
    trouble = _run_against(start, output)
    for name in (*suite.REVISIONS, suite.AUTHORIZATION):
        trouble += _judge(f"{what}, {name}", suite.tables(name), output / name)
    for line in trouble:
        print(f"{what}: {line}", file=sys.stderr)
    return not trouble


def _judge(what: str, tables: Path, output: Path) -> list[str]:
    """Tell how much passes of a revision or of AUTHORIZATION; what is not as expected."""
    expected = verdict.read_expected(tables)
    results = verdict.read_results(output) if output.exists() else {}
    checks = sum(verdict.passed(checks) for checks in results.values())
    later = len(expected.scenarios) + len(expected.checks)
    print(
        f"{what}: {len(expected.passing)} scenarios served, {checks} checks pass, "
        f"{later} entries to come",
        flush=True,
    )
    return [f"{tables.name}: {line}" for line in verdict.complaints(results, expected)]


def _run_against(start: Start, output: Path) -> list[str]:
    """Run the suite; what it or the server's end complained of, or nothing."""
    trouble: list[str] = []
    try:
        with (
            tempfile.TemporaryDirectory(prefix="mcphost-conformance-") as folder,
            start(Path(folder)) as server,
        ):
            url = f"{server.base}/t/conformance/mcp"
            warm(url)
            for revision in suite.REVISIONS:
                trouble += _trouble(revision, partial(suite.run, url, revision, output / revision))
            name = suite.AUTHORIZATION
            trouble += _trouble(name, partial(sign_in.run, server, output / name))
    except (AssertionError, OSError) as error:
        trouble.append(f"the server: {error}")
    return trouble


def _trouble(name: str, run: Callable[[], str]) -> Sequence[str]:
    try:
        run()
    except suite.SuiteError as error:
        return [f"{name}: the suite ended with {error}"]
    return []


def _one(folder: Path) -> AbstractContextManager[Server]:
    return serving("uvicorn", folder / "home", **SETTINGS)


@contextmanager
def _two(folder: Path) -> Iterator[Server]:
    with nodes.service(folder, **SETTINGS) as service:
        yield service.server
        assert not service.proxy.failures, service.proxy.failures
        assert len(service.proxy.served) == 2, "one node served everything"


def warm(url: str) -> None:
    """Let both nodes do everything once that the first scenario measures."""
    for method, params in (
        ("server/discover", {}),
        ("tools/list", {}),
        ("tools/call", {"name": "test_simple_text"}),
        ("subscriptions/listen", {"notifications": {"toolsListChanged": True}}),
    ):
        for _ in range(NODES):
            ask(url, method, params)


def ask(url: str, method: str, params: Mapping[str, object]) -> None:
    """One request, as a modern client sends it, up to the first line of its answer, which does not
    matter here."""
    meta = {
        f"{PREFIX}protocolVersion": REVISION,
        f"{PREFIX}clientInfo": {"name": "warm-up", "version": "1"},
        f"{PREFIX}clientCapabilities": {},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": REVISION,
        "Mcp-Method": method,
    }
    if "name" in params:
        headers["Mcp-Name"] = str(params["name"])
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as response:
        response.readline()


if __name__ == "__main__":
    sys.exit(main())
