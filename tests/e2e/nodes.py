"""Nodes of one service: processes that share a database and a Redis, and nothing else."""

import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.e2e import shared_services
from tests.e2e.admin import Admin
from tests.e2e.processes import Life, Server, free_port, manage
from tests.e2e.proxy import Proxy, proxying
from tests.e2e.shared_services import Redis


class Node:
    """One node of a service, on a port that it keeps from life to life."""

    def __init__(self, home: Path, **settings: str) -> None:
        self.port = free_port()
        self.home, self._settings = home, settings
        self._life: Life | None = None
        self._server: Server | None = None

    @property
    def server(self) -> Server:
        assert self._server
        return self._server

    @property
    def pid(self) -> int:
        return self.server.pid

    @property
    def lives(self) -> bool:
        return self._life is not None

    def start(self) -> Server:
        self._life = Life("uvicorn", self.home, self.port, self._settings)
        self._server = self._life.server
        return self._server

    def has(self, settings: Mapping[str, str]) -> bool:
        return settings.items() <= self._settings.items()

    def change(self, **settings: str) -> None:
        self._settings |= settings

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
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
    redis: Redis
    settings: Mapping[str, str]

    def admin(self) -> Admin:
        """The administrator, whose token the demo's clients have, signed in at the first node."""
        password = (self.first.home / "admin-password").read_text().strip()
        return Admin(self.first.port, password)

    def change(self, verb: str) -> None:
        self.admin().press("demo", "tools", "picture", verb)

    def manage(self, *arguments: str) -> str:
        done = manage(self.first.home, *arguments, env=self.settings)
        assert done.returncode == 0, done.stderr
        return done.stdout


@contextmanager
def service(folder: Path, *, homes: int = 2, **more: str) -> Iterator[Service]:
    places = [folder / f"machine-{1 + number % homes}" / "home" for number in range(2)]
    with (
        shared_services.initialized(places[0], **more) as shared,
        shared_services.redis(folder) as redis,
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
