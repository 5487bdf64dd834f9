"""Which proxies are trusted for the client's address."""

from mcphost.transport.server.uvicorn import ClientTimeouts, build


async def _nothing(scope: object, receive: object, send: object) -> None:
    return None


def test_forwarded_headers_are_not_trusted_by_default() -> None:
    assert build(_nothing, "127.0.0.1", 8000, ClientTimeouts()).config.proxy_headers is False


def test_forwarded_headers_of_configured_proxies_are_trusted() -> None:
    config = build(_nothing, "127.0.0.1", 8000, ClientTimeouts(), proxies="10.0.0.0/8").config
    assert config.proxy_headers is True
    assert config.forwarded_allow_ips == "10.0.0.0/8"
