"""`python -m tests.conformance.run`: the conformance suite against a server of its own.

Starts the server as `make up` does, over a throw-away data folder and on a free port, with the
public tenant `conformance`; warms it, because the suite's first scenario gives it half a second;
and judges every check (see verdict.py). The checks stay in build/conformance/out. Exit 0 or 1.
"""

import json
import sys
import tempfile
import urllib.request
from collections.abc import Mapping
from pathlib import Path

from tests.conformance import suite, verdict
from tests.e2e.processes import serving

OUTPUT = suite.FOLDER / "out"
PREFIX = "io.modelcontextprotocol/"


def main() -> int:
    expected = verdict.read_expected(suite.SOURCE)
    trouble: list[str] = []
    try:
        suite.install()
        with tempfile.TemporaryDirectory(prefix="mcphost-conformance-") as folder:
            trouble += _run_against_a_server(Path(folder) / "home")
    except suite.SuiteError as error:
        print(f"the suite could not be installed: {error}", file=sys.stderr)
        return 1
    results = verdict.read_results(OUTPUT) if OUTPUT.exists() else {}
    trouble += verdict.complaints(results, expected)
    for line in trouble:
        print(line, file=sys.stderr)
    checks = sum(verdict.passed(checks) for checks in results.values())
    later = len(expected.scenarios) + len(expected.checks)
    print(
        f"{len(expected.passing)} scenarios served, {checks} checks pass, {later} entries to come"
    )
    return 1 if trouble else 0


def _run_against_a_server(home: Path) -> list[str]:
    """Run the suite; what it or the server's end complained of, or nothing."""
    try:
        with serving("uvicorn", home, MCPHOST_CONFORMANCE="1") as server:
            url = f"{server.base}/t/conformance/mcp"
            warm(url)
            suite.run(url, OUTPUT)
    except suite.SuiteError as error:
        return [f"the suite ended with {error}"]
    except (AssertionError, OSError) as error:
        return [f"the server: {error}"]
    return []


def warm(url: str) -> None:
    """Let the server do everything once that the first scenario measures."""
    for method, params in (
        ("server/discover", {}),
        ("tools/list", {}),
        ("tools/call", {"name": "test_simple_text"}),
    ):
        ask(url, method, params)


def ask(url: str, method: str, params: Mapping[str, object]) -> None:
    """One request, as a modern client sends it; the answer does not matter here."""
    meta = {
        f"{PREFIX}protocolVersion": suite.REVISION,
        f"{PREFIX}clientInfo": {"name": "warm-up", "version": "1"},
        f"{PREFIX}clientCapabilities": {},
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": suite.REVISION,
        "Mcp-Method": method,
    }
    if "name" in params:
        headers["Mcp-Name"] = str(params["name"])
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as response:
        response.read()


if __name__ == "__main__":
    sys.exit(main())
