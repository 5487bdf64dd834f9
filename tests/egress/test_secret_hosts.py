"""Where the secrets of a tenant may be sent."""

import pytest

from mcphost.egress.addresses import Target, secret_hosts

PORTS = frozenset({9000})


@pytest.mark.parametrize(
    ("entry", "url", "may"),
    [
        ("api.example.com", "https://api.example.com/", True),
        ("api.example.com", "http://api.example.com/", False),
        ("api.example.com:9000", "http://api.example.com:9000/", False),
        ("127.0.0.1:9000", "http://127.0.0.1:9000/", True),
        ("127.0.0.1:9000", "https://127.0.0.1:9000/", True),
        ("localhost:9000", "http://localhost:9000/", True),
        ("127.0.0.1:9001", "http://127.0.0.1:9001/", False),
        ("127.0.0.1:9000", "http://127.0.0.1:9001/", False),
        ("127.0.0.1:9000", "http://localhost:9000/", False),
    ],
)
def test_a_secret_is_sent_without_tls_only_to_an_open_loopback_port(entry, url, may):
    target = Target.parse(url)
    assert any(host.matches(target) for host in secret_hosts(entry, PORTS)) is may
