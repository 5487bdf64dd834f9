"""Servers that the tests share. Each is started once and looked over when it has ended."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import handmade_calls, scripts, shared_services
from tests.e2e.handmade_calls import METRICS_TOKEN, PATIENT
from tests.e2e.node_client import NodeClient, install
from tests.e2e.nodes import Node, Service
from tests.e2e.postgresql import Postgres, postgres
from tests.e2e.processes import Server, copy_initialized, serving
from tests.e2e.recording_proxy import Relay, relaying
from tests.e2e.scripts import Prices
from tests.observability.collectors import Collector

# Small, so that every client has to turn pages.
PAGE_SIZE = "3"


_started: dict[str, Any] = {}


@contextmanager
def once(name: str, start: Callable[[], AbstractContextManager[Any]]) -> Iterator[Any]:
    """What `start` gives, for as many fixtures as want it: `tests/attacks` has the same ones, and pytest takes them
    for others. The first one that wants it ends it, which is torn down last."""
    if name in _started:
        yield _started[name]
        return
    with start() as _started[name]:
        yield _started[name]
        del _started[name]


@pytest.fixture(scope="session", autouse=True)
def _wired() -> None:
    """Nothing of the product runs in this process, so there is nothing to wire."""


@pytest.fixture(autouse=True)
def _nothing_remembered() -> None:
    """Nor anything to forget."""


@pytest.fixture(scope="session")
def collector() -> Iterator[Collector]:
    with once("collector", _collecting) as started:
        yield started


@contextmanager
def _collecting() -> Iterator[Collector]:
    started = Collector()
    try:
        yield started
    finally:
        started.close()


def _watched(collector: Collector) -> dict[str, str]:
    return {
        "MCPHOST_PAGE_SIZE": PAGE_SIZE,
        "MCPHOST_METRICS_TOKEN": METRICS_TOKEN,
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
    }


@pytest.fixture(scope="session")
def server(collector: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("uvicorn") / "home"
    with once("uvicorn", lambda: serving("uvicorn", home, **_watched(collector))) as started:
        yield started


@pytest.fixture(scope="session")
def daphne(collector: Collector, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    home = tmp_path_factory.mktemp("daphne") / "home"
    with once("daphne", lambda: serving("daphne", home, **_watched(collector))) as started:
        yield started


@pytest.fixture(scope="session")
def runserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The same application under `manage.py runserver`, without metrics. Nobody collects its traces."""
    gone = Collector()
    gone.close()
    ways = {
        "MCPHOST_PAGE_SIZE": PAGE_SIZE,
        "OTEL_EXPORTER_OTLP_ENDPOINT": gone.url,
        "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
    }
    home = tmp_path_factory.mktemp("runserver") / "home"
    with once("runserver", lambda: serving("runserver", home, **ways)) as started:
        yield started


@pytest.fixture(params=["server", "daphne", "runserver"])
def any_server(request: pytest.FixtureRequest) -> Server:
    started: Server = request.getfixturevalue(request.param)
    return started


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture(scope="session")
def machine() -> Iterator[None]:
    if reason := shared_services.missing():
        pytest.skip(reason)
    with once("machine", postgres) as cluster, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEST_DATABASE_URL", cluster.url)
        yield


@pytest.fixture(scope="session")
def prices() -> Iterator[Prices]:
    with once("prices", scripts.pricing) as started:
        yield started


@pytest.fixture(scope="session")
def pair(
    machine: None, prices: Prices, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """Two nodes with all that tests want of two nodes: tools that ask and tools that are tasks, metrics, a
    local service to call, a master key in a file."""
    folder = tmp_path_factory.mktemp("pair")
    key = shared_services.write_key(folder / "keys" / "master-key")
    settings = {
        "MCPHOST_NOTICE_SECONDS": "1",
        "MCPHOST_METRICS_TOKEN": METRICS_TOKEN,
        "MCPHOST_EGRESS_LOOPBACK_PORTS": str(prices.port),
        "MCPHOST_PROXIES": "127.0.0.1",
        "MCPHOST_MASTER_KEY": "",
        "MCPHOST_MASTER_KEY_FILE": str(key),
        "MCPHOST_NEW_MASTER_KEY_FILE": str(key.with_name("new-master-key")),
    }
    with once("pair", lambda: handmade_calls.service(folder, **settings)) as two:
        yield two


@pytest.fixture
def two_nodes(pair: Service) -> Service:
    """The two nodes, which are both there. Whoever stops or kills one starts it again."""
    handmade_calls.heal(pair)
    return pair


@pytest.fixture(scope="session")
def cluster(machine: None) -> Iterator[Postgres]:
    with postgres() as started:
        yield started


@pytest.fixture(scope="session")
def restarted(cluster: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEST_DATABASE_URL", cluster.url)
        ways = {
            **PATIENT,
            "MCPHOST_PAGE_SIZE": PAGE_SIZE,
            "MCPHOST_TASK_ENGINE": "procrastinate",
            "MCPHOST_TASK_WORKER_IN_SERVER": "0",
        }
        with handmade_calls.service(tmp_path_factory.mktemp("restarted"), **ways) as two:
            yield two


@pytest.fixture(scope="session")
def relay() -> Iterator[Relay]:
    with relaying(0) as started:
        yield started


@pytest.fixture(scope="session")
def calling_out(relay: Relay, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A server over SQLite that may call the relay. Whoever kills it starts it again."""
    home = tmp_path_factory.mktemp("calling-out") / "home"
    copy_initialized(home)
    made = Node(home, MCPHOST_EGRESS_LOOPBACK_PORTS=str(relay.port))
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="session")
def node() -> NodeClient:
    return install()
