"""Dynamic registration: bodies of real clients, refusals with their codes, limits."""

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson
import pytest

from mcphost.identity.models import OAuthClient
from mcphost.identity.oauth import registration
from mcphost.identity.oauth.errors import OAuthError, OAuthErrorCode
from mcphost.identity.oauth.registration import PER_ADDRESS
from tests.identity.oauth.test_redirects import CURSOR, VS_CODE

pytestmark = pytest.mark.django_db

HERE: Final = "192.0.2.1"
BODIES: Final[Mapping[str, Mapping[str, Any]]] = {
    "Cursor": {
        "client_name": "Cursor",
        "redirect_uris": list(CURSOR),
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    },
    "Visual Studio Code": {
        "client_name": "Visual Studio Code",
        "client_uri": "https://code.visualstudio.com",
        "grant_types": [
            "authorization_code",
            "refresh_token",
            "urn:ietf:params:oauth:grant-type:device_code",
        ],
        "response_types": ["code"],
        "redirect_uris": list(VS_CODE),
        "scope": "mcp:list mcp:call",
        "token_endpoint_auth_method": "none",
        "application_type": "native",
    },
    "MCP CLI Proxy": {
        "client_name": "MCP CLI Proxy",
        "redirect_uris": ["http://localhost:3334/oauth/callback"],
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "client_uri": "https://github.com/modelcontextprotocol/mcp-cli",
        "software_id": "2e6dc280-f3c3-4e01-99a7-8181dbd1d23d",
        "software_version": "0.15.1",
    },
    "all fields of an SDK": {
        "client_name": "all fields of an SDK",
        "redirect_uris": ["http://127.0.0.1:6276/oauth/callback"],
        "token_endpoint_auth_method": "client_secret_post",
        "scope": None, "client_uri": None, "logo_uri": None, "contacts": None, "tos_uri": None,
        "policy_uri": None, "jwks_uri": None, "jwks": None, "software_id": None,
        "grant_types": None, "response_types": None, "application_type": None,
    },
    "unknown fields": {
        "client_name": "unknown fields",
        "redirect_uris": ["https://claude.ai/api/mcp/auth_callback"],
        "new_field": {"deep": [1]},
    },
}  # fmt: skip


def register(address: str = HERE, **fields: Any) -> Mapping[str, Any]:
    body = {"client_name": "App", "redirect_uris": ["http://127.0.0.1/cb"], **fields}
    return registration.register(orjson.dumps(body), address)


def refusal(code: OAuthErrorCode, body: bytes) -> str:
    with pytest.raises(OAuthError) as caught:
        registration.register(body, HERE)
    assert caught.value.code is code, caught.value.description
    return caught.value.description


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_the_bodies_of_real_clients_pass(body: Mapping[str, Any]) -> None:
    answer = dict(registration.register(orjson.dumps(body), HERE))
    row = OAuthClient.objects.get()
    assert None not in answer.values()
    assert answer == {
        "client_id": row.pk,
        "client_id_issued_at": int(row.created_at.timestamp()),
        "client_name": body["client_name"],
        "redirect_uris": body["redirect_uris"],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    }
    assert (row.name, row.redirect_uris) == (body["client_name"], body["redirect_uris"])
    assert (row.read_at, row.fresh_until) == (None, None)


def test_an_id_cannot_be_guessed_and_is_never_the_same() -> None:
    ids = {register()["client_id"] for _ in range(3)}
    assert len(ids) == 3
    assert all(re.fullmatch(r"dcr-[0-9a-f]{32}", client_id) for client_id in ids)


@pytest.mark.parametrize(
    ("name", "shown"), [(None, "a.example:8443"), (1, "a.example:8443"), ("\u202eBank\n", "Bank")]
)
def test_a_client_without_a_readable_name_is_called_by_its_host(name: Any, shown: str) -> None:
    answer = register(client_name=name, redirect_uris=["https://a.example:8443/cb"])
    assert answer["client_name"] == shown


@pytest.mark.parametrize(
    "uris",
    [
        None, [], {}, "https://a.example/cb", [1], [None], ["https://a.example/cb", ["x"]],
        [f"https://a.example/{number}" for number in range(11)],
        ["javascript:alert(1)"], ["data:text/html,x"], ["http://evil.example/cb"],
        ["https://a.example/cb", "https://*.example/cb"], ["myapp://cb"], ["https://a.example/#f"],
    ],
)  # fmt: skip
def test_redirect_uris_that_are_not_allowed_are_refused(uris: Any) -> None:
    words = refusal(OAuthErrorCode.INVALID_REDIRECT_URI, orjson.dumps({"redirect_uris": uris}))
    assert words.endswith((".", "https."))
    assert not OAuthClient.objects.exists()


@pytest.mark.parametrize(
    "body",
    [
        b"", b"[]", b"null", b"{", b"\xff", b"redirect_uris=https://a.example", b"[" * 9000,
        b'{"redirect_uris": ["https://a.example/"], "client_name": "\\ud800"}',
        b'{"redirect_uris": ["https://a.example/"], "grant_types": ["client_credentials"]}',
        b'{"redirect_uris": ["https://a.example/"], "grant_types": "authorization_code"}',
    ],
    ids=lambda body: str(body[-40:]),
)  # fmt: skip
def test_metadata_that_cannot_be_read_is_refused(body: bytes) -> None:
    refusal(OAuthErrorCode.INVALID_CLIENT_METADATA, body)
    assert not OAuthClient.objects.exists()


def test_a_network_registers_only_so_many_clients_an_hour() -> None:
    for number in range(PER_ADDRESS):
        register(f"2001:db8::{number:x}")
    with pytest.raises(OAuthError, match="from one network") as caught:
        register("2001:db8::ffff")
    assert caught.value.code is OAuthErrorCode.TOO_MANY
    register("2001:db8:1::1")
    assert OAuthClient.objects.count() == PER_ADDRESS + 1


def test_what_is_refused_does_not_count() -> None:
    for _ in range(PER_ADDRESS + 1):
        refusal(OAuthErrorCode.INVALID_REDIRECT_URI, b"{}")
    register()


def test_ten_thousand_registrations_are_the_end_until_some_are_connected_or_pruned() -> None:
    rows = (OAuthClient(id=f"dcr-{number}", name="x") for number in range(10_000))
    OAuthClient.objects.bulk_create(rows)
    with pytest.raises(OAuthError, match="no member has connected") as caught:
        register()
    assert caught.value.code is OAuthErrorCode.TOO_MANY
    OAuthClient.objects.filter(id="dcr-0").delete()
    register()
    with pytest.raises(OAuthError):
        register()
    assert OAuthClient.objects.count() == 10_000
