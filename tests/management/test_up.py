"""`manage.py up`."""

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import override_settings

from mcphost import home
from tests.transport.ports import free_port, settled_memory

__all__ = ["settled_memory"]

PATIENCE = 30
OURS = {"MCPHOST_HOST": "127.0.0.1", "ASGI_APPLICATION": "mcphost.routing.application"}


@contextmanager
def _stopped_when_it_listens(port: int) -> Iterator[None]:
    """Send SIGINT (Ctrl-C) as soon as the port accepts connections."""

    def stop() -> None:
        while not done.wait(0.02):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    os.kill(os.getpid(), signal.SIGINT)
                    return

    done = threading.Event()
    thread = threading.Thread(target=stop)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(PATIENCE)


def _up(port: int, out: StringIO) -> None:
    with (
        override_settings(MCPHOST_PORT=port, **OURS),
        _stopped_when_it_listens(port),
    ):
        call_command("up", stdout=out)


@pytest.mark.django_db(transaction=True)
def test_up_sets_up_prints_the_addresses_serves_and_exits_quietly(
    data: home.Home, settled_memory: None
) -> None:
    port, out = free_port(), StringIO()
    _up(port, out)
    said = out.getvalue()
    assert f"http://127.0.0.1:{port}/t/demo/mcp" in said
    assert home.read(data.demo_token) in said
    assert f"user admin, password {home.read(data.admin_password)}" in said
    assert f"user auditor, password {home.read(data.auditor_password)}" in said

    user = User.objects.get(username="admin")
    user.set_password("one of their own")
    user.save()
    again = StringIO()
    _up(port, again)
    assert home.read(data.admin_password) not in again.getvalue()
    assert "(changed by you)" in again.getvalue()


def test_up_refuses_an_occupied_port_before_it_prints_or_creates_anything(data: home.Home) -> None:
    out = StringIO()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            override_settings(MCPHOST_PORT=port, **OURS),
            pytest.raises(CommandError, match=f"127.0.0.1:{port}.* PORT"),
        ):
            call_command("up", stdout=out)
    assert out.getvalue() == ""
    assert list(data.path.iterdir()) == []


def test_up_refuses_a_reachable_host_unless_exposing_is_enabled(data: home.Home) -> None:
    with override_settings(MCPHOST_HOST="0.0.0.0", MCPHOST_LOOPBACK=False):
        with pytest.raises(CommandError, match="MCPHOST_EXPOSE_DEMO=1"):
            call_command("up", stdout=StringIO())
        with socket.create_server(("0.0.0.0", 0)) as taken:
            exposed = {"MCPHOST_EXPOSE_DEMO": True, "MCPHOST_PORT": taken.getsockname()[1]}
            with override_settings(**exposed), pytest.raises(CommandError, match="PORT"):
                call_command("up", stdout=StringIO())
    assert list(data.path.iterdir()) == []
