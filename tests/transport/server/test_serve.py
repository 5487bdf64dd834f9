"""`manage.py serve`; as a process it is tested in tests/e2e."""

import gc
import resource
import socket

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from mcphost.audit.writer.writer import writer
from mcphost.transport.management.commands.serve import allow_files
from tests.transport.ports import settled_memory

__all__ = ["settled_memory"]


@pytest.mark.django_db(transaction=True)
def test_an_occupied_port_is_refused_with_the_name_of_the_variable(settled_memory: None) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        override_settings(ASGI_APPLICATION="mcphost.routing.application"),
    ):
        port = taken.getsockname()[1]
        with pytest.raises(CommandError, match=rf"127\.0\.0\.1:{port}.* PORT"):
            call_command("serve", host="127.0.0.1", port=port)
    assert writer.refuse_new(), "what was started for it has ended"
    assert gc.get_freeze_count() > 0


def test_a_port_above_65535_is_refused_and_nothing_listens() -> None:
    with pytest.raises(CommandError, match=r"127\.0\.0\.1:99999.* 65535: set PORT"):
        call_command("serve", host="127.0.0.1", port=99_999)


def test_the_file_limit_of_a_server_is_raised_to_the_hard_limit() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (before[0] // 2, before[1]))
        allow_files()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (before[1], before[1])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
