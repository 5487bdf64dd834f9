"""Nodes of one service: processes that share a database and a Redis, and nothing else."""

import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.e2e import backing
from tests.e2e.admin import Admin
from tests.e2e.processes import Life, Server, free_port, manage
from tests.e2e.proxy import Proxy, proxying


class Node:
    """One node of a service, on a port that it keeps from life to life."""

    def __init__(self, home: Path, **settings: str) -> None:
        self.port = free_port()
        self.home, self._settings = home, settings
        self._life: Life | None = None
        self._server: Server | None = None

    @property
    def server(self) -> Server:
        """As it is in its present life, or was in its last."""
        assert self._server
        return self._server

    @property
    def pid(self) -> int:
        return self.server.pid

    @property
    def lives(self) -> bool:
        return self._life is not None

    def start(self) -> Server:
        """It is ready."""
        self._life = Life("uvicorn", self.home, self.port, self._settings)
        self._server = self._life.server
        return self._server

    def has(self, settings: Mapping[str, str]) -> bool:
        """Whether it has these, in its next life at the latest."""
        return settings.items() <= self._settings.items()

    def change(self, **settings: str) -> None:
        """From its next life on it has these settings, too."""
        self._settings |= settings

    def stop(self) -> None:
        """End it; it leaves nothing, and has status 0, or this fails."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """It dies without a word, or has done so already."""
        self._end(signal.SIGKILL)

    def _end(self, ending: signal.Signals) -> None:
        life, self._life = self._life, None
        if life is not None:
            life.end(ending)


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
