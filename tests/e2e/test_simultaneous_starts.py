"""`up` several times over one PostgreSQL, at the same moment: nodes of one service, set up once."""

import base64
import secrets
import signal
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import psycopg

from tests.e2e import raw, shared_services
from tests.e2e.admin import Admin
from tests.e2e.processes import Server, _start, _wait_until_ready, free_port, stop

ECHO = raw.call("echo", {"text": "together"})


@contextmanager
def _up_at_once(*homes: Path, **settings: str) -> Iterator[list[Server]]:
    with ExitStack() as ends:
        started = []
        for home in homes:
            home.parent.mkdir(exist_ok=True)
            server, process = _start("uvicorn", free_port(), home, home.parent, settings)
            ends.callback(stop, process, signal.SIGTERM)
            started.append((server, process))
        for server, process in started:
            _wait_until_ready(server, process)
        yield [server for server, _ in started]


def test_nodes_started_together_are_set_up_once_and_share_tokens_and_sign_ins(
    machine: None, tmp_path: Path
) -> None:
    here, there = tmp_path / "here" / "home", tmp_path / "there" / "home"
    key = base64.b64encode(secrets.token_bytes(32)).decode()
    with shared_services.database() as url, shared_services.redis(tmp_path) as redis:
        settings = {"DATABASE_URL": url, "REDIS_URL": redis.url, "MCPHOST_MASTER_KEY": key}
        with _up_at_once(here, here, there, **settings) as nodes:
            with closing(psycopg.connect(url.replace("postgres:", "postgresql:", 1))) as link:
                assert link.execute("SELECT count(*) FROM auth_user").fetchone() == (2,)
            for asked in nodes:
                for told in nodes:
                    assert raw.post(asked, ECHO, told.token).status == 200
            passwords = [home for home in (here, there) if (home / "admin-password").exists()]
            assert len(passwords) == 1
            browser = Admin(nodes[0].port, (passwords[0] / "admin-password").read_text().strip())
            for node in nodes:  # the same sign-in, wherever a balancer sends the next request
                browser.port = node.port
                browser.get("/admin/")
