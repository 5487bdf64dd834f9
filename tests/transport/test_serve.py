"""`manage.py serve`; what it is like as a process is tested in tests/e2e."""

import gc
import socket

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from mcphost.audit.writer import writer
from tests.transport.ports import settled_memory

__all__ = ["settled_memory"]


@pytest.mark.django_db(transaction=True)
def test_a_taken_port_is_refused_with_the_name_of_the_variable(settled_memory: None) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        override_settings(ASGI_APPLICATION="mcphost.routing.application"),
    ):
        port = taken.getsockname()[1]
        with pytest.raises(CommandError, match=rf"127\.0\.0\.1:{port}.* PORT"):
            call_command("serve", host="127.0.0.1", port=port)
    assert writer.refuse_new(), "what was started for it has ended"
    assert gc.get_freeze_count() > 0
