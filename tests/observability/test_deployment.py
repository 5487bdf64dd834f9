from dataclasses import replace
from pathlib import Path

import pytest

from mcphost.observability.deployment import Connections, Deployment, findings


@pytest.fixture
def good(tmp_path: Path) -> Deployment:
    return Deployment(
        host="0.0.0.0",
        loopback=False,
        https=True,
        allowed_hosts=("mcp.example.com",),
        trusted_origins=("https://mcp.example.com",),
        tools=tmp_path,
        exposed=(),
    )


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"host": "127.0.0.1", "loopback": True, "allowed_hosts": ("localhost", "127.0.0.1")},
        {"loopback": True, "expose_demo": True},
        {"connections": Connections(25, 4, 100)},
    ],
    ids=["plain", "default names on loopback", "demo on loopback", "all connections used"],
)
def test_a_good_deployment_has_no_findings(good, change):
    assert findings(replace(good, **change)) == ()


@pytest.mark.parametrize(
    ("change", "id", "fatal"),
    [
        ({"allowed_hosts": ("*",)}, "mcphost.E101", True),
        ({"allowed_hosts": ()}, "mcphost.E102", True),
        ({"allowed_hosts": ("localhost", "127.0.0.1", "[::1]")}, "mcphost.E103", True),
        ({"https": False, "trusted_origins": ()}, "mcphost.W104", False),
        ({"trusted_origins": ("http://mcp.example.com",)}, "mcphost.E105", True),
        ({"exposed": (Path("/srv/master-key"),)}, "mcphost.E106", True),
        ({"tools": Path("/nowhere")}, "mcphost.E107", True),
        ({"conformance": True}, "mcphost.W108", False),
        ({"expose_demo": True}, "mcphost.E109", True),
        ({"alone": True, "redis": True}, "mcphost.E110", True),
        ({"connections": Connections(18, 6, 100)}, "mcphost.E111", True),
        ({"connections": Connections(18, 1, None)}, "mcphost.W112", False),
    ],
)
def test_a_deployment_that_cannot_work_is_reported_with_a_hint(good, change, id, fatal):
    (finding,) = findings(replace(good, **change))
    assert (finding.id, finding.fatal) == (id, fatal)
    assert finding.message
    assert finding.hint
