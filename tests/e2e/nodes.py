"""Nodes of one service: processes that share a database and a Redis, and nothing else."""

import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.e2e import backing
from tests.e2e.admin import Admin
from tests.e2e.processes import Server, free_port, manage, serving
from tests.e2e.proxy import Proxy, proxying


class Node:
    """One node of a service, on a port that it keeps from life to life."""

    def __init__(self, home: Path, **settings: str) -> None:
        self.port = free_port()
        self.home, self._settings = home, settings
        self._life = ExitStack()

    def start(self, ending: signal.Signals = signal.SIGTERM) -> Server:
        """It is ready. `ending` is what `stop` will send."""
        return self._life.enter_context(
            serving("uvicorn", self.home, ending, port=self.port, **self._settings)
        )

    def change(self, **settings: str) -> None:
        """From its next life on it has these settings, too."""
        self._settings |= settings

    def stop(self) -> None:
        """End it; it leaves nothing, and after SIGTERM has status 0, or this fails."""
        self._life.close()


@dataclass(frozen=True)
class Service:
    """Two nodes behind a proxy. `server` is what a client sees: the proxy."""

    server: Server
    proxy: Proxy
    first: Node
    second: Node
    redis: backing.Redis
    settings: Mapping[str, str]

    def admin(self) -> Admin:
        """The administrator, whose token the demo's clients have, signed in at the first node."""
        password = (self.first.home / "admin-password").read_text().strip()
        return Admin(self.first.port, password)

    def manage(self, *arguments: str) -> str:
        """Run a command beside the nodes; what it printed."""
        done = manage(self.first.home, *arguments, env=self.settings)
        assert done.returncode == 0, done.stderr
        return done.stdout


@contextmanager
def service(folder: Path, *, homes: int = 2, **more: str) -> Iterator[Service]:
    """Two nodes with a PostgreSQL database and a Redis of their own.

    Each has its own data folder, as on two machines, and shares the secrets; with `homes=1` both
    have the same. Needs what `backing.missing` looks for.
    """
    places = [folder / f"machine-{1 + number % homes}" / "home" for number in range(2)]
    with (
        backing.initialized(places[0], **more) as shared,
        backing.redis(folder) as redis,
        ExitStack() as lives,
    ):
        settings = {"REDIS_URL": redis.url, **shared}
        places[1].parent.mkdir(exist_ok=True)
        first, second = (Node(home, **settings) for home in places)
        lives.callback(first.stop)
        lives.callback(second.stop)
        seen = first.start()
        second.start()
        with proxying(first.port, second.port) as proxy:
            server = replace(seen, port=proxy.port)
            yield Service(server, proxy, first, second, redis, settings)
