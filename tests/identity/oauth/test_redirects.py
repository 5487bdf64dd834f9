"""Redirect URIs: exact but for the port of loopback; nothing else than https, loopback and listed schemes."""

import pytest

from mcphost.identity.oauth.client_metadata import PINS, Pin
from mcphost.identity.oauth.redirects import (
    MAX_LENGTH,
    PRIVATE_USE_SCHEMES,
    host_of,
    is_loopback,
    matches,
    problem,
)

CURSOR = (
    "cursor://anysphere.cursor-mcp/oauth/callback",
    "https://www.cursor.com/agents/mcp/oauth/callback",
    "http://localhost:8787/callback",
)
VS_CODE = (
    "https://insiders.vscode.dev/redirect",
    "https://vscode.dev/redirect",
    "http://127.0.0.1/",
    "http://localhost/",
    "http://127.0.0.1:33418/",
    "http://localhost:33418/",
)
OTHERS = (
    "http://127.0.0.1:6276/oauth/callback",
    "http://localhost:3334/oauth/callback",
    "http://[::1]:9000/callback",
    "https://claude.ai/api/mcp/auth_callback",
    "https://app.example:8443/callback?tenant=1",
    "vscode://vscode.github-authentication/did-authenticate",
    "vscode-insiders://vscode.github-authentication/did-authenticate",
)


@pytest.mark.parametrize("uri", [*CURSOR, *VS_CODE, *OTHERS])
def test_the_redirect_uris_of_real_clients_are_allowed(uri: str) -> None:
    assert problem(uri) is None


@pytest.mark.parametrize("pin", PINS.values(), ids=lambda pin: pin.name)
def test_the_redirect_uris_of_every_pin_are_allowed(pin: Pin) -> None:
    assert {problem(uri) for uri in pin.redirect_uris} == {None}


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("", "not absolute"),
        ("/callback", "not absolute"),
        ("//app.example/callback", "not absolute"),
        ("http://app.example/callback", "use https"),
        ("http://127.0.0.2/callback", "use https"),
        ("http://localhost.app.example/callback", "use https"),
        ("http://127.0.0.1.app.example/callback", "use https"),
        ("http://LOCALHOST/callback", "use https"),
        ("http://localhost:0/callback", "port"),
        ("http://localhost:65536/callback", "port"),
        ("http://localhost@app.example/callback", "user name"),
        ("https://user:secret@app.example/callback", "user name"),
        ("https://app.example/callback#fragment", "fragment"),
        ("https://app.example/a/../callback", "dot segments"),
        ("https://app.example/a/%2e%2E/callback", "dot segments"),
        ("https://app.example/.", "dot segments"),
        ("http://localhost/a/./callback", "dot segments"),
        ("https:///callback", "malformed"),
        ("https://", "malformed"),
        ("https:app.example", "malformed"),
        ("https://0x7f.1/callback", "malformed"),
        ("https://*.app.example/callback", "wildcard"),
        ("https://app.example/*", "wildcard"),
        ("http://localhost:*/callback", "wildcard"),
        ("https://app.example\\@evil.example/", "no URI has"),
        ("https://app.example/call back", "no URI has"),
        ("https://app.example/\n", "no URI has"),
        ("https://app.example/\0", "no URI has"),
        ("https://app.example/\u202e", "no URI has"),
        ("https://bücher.example/", "no URI has"),
        ("javascript:alert(1)", "scheme"),
        ("JavaScript:alert(1)", "scheme"),
        ("data:text/html,x", "scheme"),
        ("vbscript:x", "scheme"),
        ("file:///etc/passwd", "scheme"),
        ("blob:https://app.example/1", "scheme"),
        ("about:blank", "scheme"),
        ("ftp://app.example/", "scheme"),
        ("com.example.app:/callback", "scheme"),
        ("myapp://callback", "scheme"),
        ("cursor:oauth", "no application"),
        ("cursor:///oauth", "no application"),
        ("cursor://user@host/oauth", "no application"),
        ("CURSOR://anysphere.cursor-mcp/", "scheme"),
        ("https://app.example/" + "a" * MAX_LENGTH, "more than"),
    ],
)
def test_a_redirect_uri_that_is_dangerous_or_malformed_is_refused(uri: str, words: str) -> None:
    reason = problem(uri)
    assert reason is not None
    assert words in reason


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost"])
def test_a_loopback_uri_matches_on_every_port_and_nothing_else_may_differ(host: str) -> None:
    registered = [f"http://{host}/callback?a=1"]
    assert matches(registered, f"http://{host}:1/callback?a=1")
    assert matches(registered, f"http://{host}:65535/callback?a=1")
    assert matches([f"http://{host}:33418/"], f"http://{host}:50000/")
    assert matches([f"http://{host}:33418/"], f"http://{host}/")
    others = {"127.0.0.1", "[::1]", "localhost", "127.0.0.2", "0.0.0.0"} - {host}
    for presented in (
        f"https://{host}:1/callback?a=1",
        f"http://{host}:1/callback",
        f"http://{host}:1/callback?a=2",
        f"http://{host}:1/callback/?a=1",
        f"http://{host}:1/Callback?a=1",
        f"http://{host}:1/callback?a=1#f",
        f"http://{host}:0/callback?a=1",
        f"http://{host}:65536/callback?a=1",
        f"http://{host}:1@app.example/callback?a=1",
        f"http://{host}:/callback?a=1",
        f"http://{host}:1\n/callback?a=1",
        *(f"http://{other}:1/callback?a=1" for other in others),
    ):
        assert not matches(registered, presented), presented


@pytest.mark.parametrize(
    "presented",
    [
        "https://app.example:8443/callback",
        "https://app.example/callback/",
        "https://app.example/callback?x=1",
        "https://APP.example/callback",
        "https://app.example.evil.example/callback",
        "http://app.example/callback",
        "https://app.example/callback#x",
        "https://app.example/%63allback",
        "",
    ],
)
def test_every_other_uri_matches_only_itself(presented: str) -> None:
    registered = ["https://app.example/callback", "cursor://anysphere.cursor-mcp/oauth/callback"]
    assert all(matches(registered, uri) for uri in registered)
    assert not matches(registered, presented)
    assert not matches([], presented)


def test_people_are_told_what_receives_the_redirect() -> None:
    assert host_of("https://claude.ai/api/mcp/auth_callback") == "claude.ai"
    assert host_of("https://app.example:8443/callback") == "app.example:8443"
    assert host_of("http://[::1]:9000/callback") == "[::1]:9000"
    for scheme in PRIVATE_USE_SCHEMES:
        assert host_of(f"{scheme}://some.app/callback?x=1") == f"{scheme}://some.app"
        assert not is_loopback(f"{scheme}://some.app/callback")
    assert [is_loopback(uri) for uri in CURSOR] == [False, False, True]
