"""The servers under attack: `make up` over SQLite and over PostgreSQL, each started once, and the same with small
limits."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import shared_services
from tests.e2e.conftest import (
    _nothing_remembered,
    _wired,
    collector,
    daphne,
    home,
    machine,
    pair,
    prices,
    runserver,
    server,
    two_nodes,
)
from tests.e2e.processes import ROOT, Server, copy_initialized, manage, serving

__all__ = [
    "_nothing_remembered",
    "_wired",
    "collector",
    "daphne",
    "home",
    "machine",
    "pair",
    "prices",
    "runserver",
    "server",
    "two_nodes",
]

PROBE = ROOT / "tests" / "probes" / "contexts.py"
PUBLISH = """
from mcphost.audit.records import Actor
from mcphost.catalogue import kinds
from mcphost.catalogue.seeding import publish_functions
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.models import Tenant
from mcphost.tenants.services import create_tenant
actor = Actor.system("a test")
kinds.discover()
hostile = [name for name, _ in kinds.functions() if name.startswith("contexts.")]
create_tenant("commons", TenantFields(title="Commons", public=True), actor=actor)
for tenant in Tenant.objects.filter(slug__in=["demo", "commons"]):
    publish_functions(tenant.id, hostile, actor)
"""
SESSIONS = 20
CHANGES = 120
LIMITS = {
    "MCPHOST_CONFORMANCE": "1",
    "MCPHOST_PROXIES": "127.0.0.1",
    "MCPHOST_SESSIONS_PER_TOKEN": str(SESSIONS),
    "MCPHOST_SESSION_CHANGES_PER_MINUTE": str(CHANGES),
    "MCPHOST_PING_SECONDS": "0.2",
}
"""Smaller than by default, so that a flood reaches them soon."""


def _ways(folder: Path) -> dict[str, str]:
    """The settings of a server with a public tenant beside the demo's, and hostile tools at both."""
    tools = folder / "tools"
    shutil.copytree(ROOT / "tools", tools, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(PROBE, tools)
    return {
        "MCPHOST_CONFORMANCE": "1",
        "MCPHOST_TOOLS_PATH": str(tools),
    }


def _publish(home: Path, ways: dict[str, str]) -> None:
    done = manage(home, "shell", "-c", PUBLISH, env=ways)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def sqlite_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("attacked")
    home, ways = folder / "home", _ways(folder)
    copy_initialized(home)
    _publish(home, ways)
    with serving("uvicorn", home, **ways) as started:
        yield started


@pytest.fixture(scope="session")
def postgresql_server(machine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("attacked-postgresql")
    home = folder / "home"
    with shared_services.initialized(home, **_ways(folder)) as ways:
        _publish(home, ways)
        with serving("uvicorn", home, **ways) as started:
            yield started


@pytest.fixture(params=["sqlite_server", "postgresql_server"])
def attacked(request: pytest.FixtureRequest) -> Server:
    started: Server = request.getfixturevalue(request.param)
    return started


@pytest.fixture(scope="session")
def limited_postgresql(
    machine: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, dict[str, str]]]:
    """A server with a public tenant beside the demo's, and small limits, over a PostgreSQL database of its own; and
    its settings."""
    home = tmp_path_factory.mktemp("limited-postgresql") / "home"
    with (
        shared_services.initialized(home, **LIMITS) as ways,
        serving("uvicorn", home, **ways) as started,
    ):
        yield started, ways


@pytest.fixture(scope="session")
def two_limited(
    limited_postgresql: tuple[Server, dict[str, str]],
) -> Iterator[tuple[Server, Server]]:
    one, ways = limited_postgresql
    with serving("serve", one.home, **ways) as other:
        yield one, other


@pytest.fixture
def limited(limited_postgresql: tuple[Server, dict[str, str]]) -> Server:
    return limited_postgresql[0]
