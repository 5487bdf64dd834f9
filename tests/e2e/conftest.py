"""Servers that the tests share. Each is started once and looked over when it has ended."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import asking, backing
from tests.e2e.node_client import NodeClient, install
from tests.e2e.nodes import Service
from tests.e2e.postgresql import postgres
from tests.e2e.processes import Server, serving

# Small, so that every client has to turn pages.
PAGE_SIZE = "3"


@pytest.fixture(scope="session", autouse=True)
def _wired() -> None:
    """Nothing of the product runs in this process, so there is nothing to wire."""


@pytest.fixture(autouse=True)
def _nothing_remembered() -> None:
    """Nor anything to forget."""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server as `make up` runs it."""
    home = tmp_path_factory.mktemp("uvicorn") / "home"
    with serving("uvicorn", home, MCPHOST_PAGE_SIZE=PAGE_SIZE) as started:
        yield started


@pytest.fixture(scope="session")
def daphne(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The same application under Daphne."""
    home = tmp_path_factory.mktemp("daphne") / "home"
    with serving("daphne", home, MCPHOST_PAGE_SIZE=PAGE_SIZE) as started:
        yield started


@pytest.fixture(scope="session")
def runserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The same application under `manage.py runserver`."""
    home = tmp_path_factory.mktemp("runserver") / "home"
    with serving("runserver", home, MCPHOST_PAGE_SIZE=PAGE_SIZE) as started:
        yield started


@pytest.fixture(params=["server", "daphne", "runserver"])
def any_server(request: pytest.FixtureRequest) -> Server:
    """Each of the three servers in turn."""
    started: Server = request.getfixturevalue(request.param)
    return started


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A data folder for a server of the test's own; it does not exist yet."""
    return tmp_path / "home"


@pytest.fixture(scope="session")
def machine() -> Iterator[None]:
    """This machine has what nodes of one service share. Databases are on a PostgreSQL of this test
    process: two processes with all their services would want more connections than one usually has."""
    if reason := backing.missing():
        pytest.skip(reason)
    with postgres() as cluster, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEST_DATABASE_URL", cluster.url)
        yield


@pytest.fixture(scope="session")
def asked(machine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Two nodes that serve what asks. Whoever stops one starts it again."""
    folder = tmp_path_factory.mktemp("asked")
    with asking.service(folder, MCPHOST_NOTICE_SECONDS="1") as two:
        yield two


@pytest.fixture(scope="session")
def node() -> NodeClient:
    """The TypeScript clients, installed once under `build/`."""
    return install()
