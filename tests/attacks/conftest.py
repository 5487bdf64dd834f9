"""The servers under attack: `make up` over SQLite and over PostgreSQL, each started once."""

from collections.abc import Iterator

import pytest

from tests.e2e import backing
from tests.e2e.conftest import _nothing_remembered, _wired, daphne, home, machine, runserver
from tests.e2e.processes import Server, serving

__all__ = ["_nothing_remembered", "_wired", "daphne", "home", "machine", "runserver"]


@pytest.fixture(scope="session")
def sqlite_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server as `make up` runs it."""
    with serving("uvicorn", tmp_path_factory.mktemp("attacked") / "home") as started:
        yield started


@pytest.fixture(scope="session")
def postgresql_server(machine: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The same over a PostgreSQL database of its own."""
    home = tmp_path_factory.mktemp("attacked-postgresql") / "home"
    with backing.initialized(home) as shared, serving("uvicorn", home, **shared) as started:
        yield started


@pytest.fixture(params=["sqlite_server", "postgresql_server"])
def attacked(request: pytest.FixtureRequest) -> Server:
    """The server over each database in turn."""
    started: Server = request.getfixturevalue(request.param)
    return started
