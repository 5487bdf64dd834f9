"""Whether the server's port is free."""

import socket

from mcphost.transport.server.port_check import is_free
from tests.transport.ports import free_port


def test_an_unused_port_is_free_and_stays_free_after_the_check() -> None:
    port = free_port()
    for _ in range(2):
        assert is_free("127.0.0.1", port)
        assert is_free("localhost", port)


def test_a_port_with_a_listener_is_not_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert not is_free("127.0.0.1", taken.getsockname()[1])


def test_an_address_of_another_machine_is_not_free() -> None:
    assert not is_free("192.0.2.1", free_port())
    assert not is_free("no such host", free_port())


def test_ipv6_is_checked_separately() -> None:
    """A server of both address families binds each separately."""
    if not socket.has_dualstack_ipv6():
        return
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as taken:
        assert not is_free("::1", taken.getsockname()[1])
