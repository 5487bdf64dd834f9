"""Metadata documents: where they are fetched from, what they must say, how long that is fresh."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import orjson
import pytest
from pytest_django import Settings

from mcphost.identity.models import CLIENT_ID_LENGTH
from mcphost.identity.oauth import client_metadata
from mcphost.identity.oauth.client_metadata import MAX_DOCUMENT_BYTES, DocumentError
from tests.egress.conftest import Authority
from tests.identity.oauth.hosts import NAME, DocumentHost, reach


def refusal(url: str) -> str:
    with pytest.raises(DocumentError) as caught:
        client_metadata.read_document(url)
    return str(caught.value)


def test_a_document_says_who_its_client_is(host: DocumentHost) -> None:
    read = client_metadata.read_document(host.url)
    assert (read.name, read.redirect_uris) == ("Reader", ("http://127.0.0.1/cb",))
    assert host.requests == ["/client.json"]


# Where it is fetched from


@pytest.mark.parametrize(
    "url",
    [
        "", "client", f"http://{NAME}/c.json", f"HTTPS://{NAME}/c.json", "https://", "https:///c.json",
        f"https://me@{NAME}/c.json", f"https://me:pw@{NAME}/c.json", f"https://{NAME}/c.json#a",
        f"https://{NAME}/a/../c.json", f"https://{NAME}/a/%2e%2e/c.json", f"https://{NAME}/./c.json",
        f"https://{NAME}/c.json\n", f"https://{NAME}/\u202e", f"https://{NAME}\\@b.example/",
        f"https://{NAME}:0/", f"https://{NAME}:99999/", "https://0x7f000001/", "cursor://app/x",
        "https://[::1", "https://*/c.json", f"https://{NAME}/" + "a" * CLIENT_ID_LENGTH,
    ],
)  # fmt: skip
def test_a_url_that_may_mean_two_things_is_not_even_resolved(
    host: DocumentHost,
    authority: Authority,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    url: str,
) -> None:
    resolved = reach(host, authority, settings, monkeypatch)
    assert refusal(url).startswith("This client id ")
    assert (resolved, host.requests) == ([], [])


@pytest.mark.parametrize(
    "addresses",
    [
        ["10.0.0.1"], ["192.168.1.1"], ["169.254.169.254"], ["100.64.0.1"], ["0.0.0.0"], ["fd00::1"],
        ["fe80::1"], ["::ffff:127.0.0.1"], ["::ffff:10.0.0.1"], ["::7f00:1"], ["64:ff9b::7f00:1"],
        ["64:ff9b::a00:1"], ["64:ff9b:1::a00:1"], ["2002:7f00:1::"], ["8.8.8.8", "10.0.0.1"], [],
    ],
)  # fmt: skip
def test_a_name_with_an_address_that_is_not_public_is_refused(
    host: DocumentHost,
    authority: Authority,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    addresses: Sequence[str],
) -> None:
    reach(host, authority, settings, monkeypatch, {NAME: addresses})
    words = refusal(host.url)
    assert "has no address on the public internet" in words
    assert not any(address in words for address in addresses)
    assert host.requests == []


@pytest.mark.parametrize("name", ["127.0.0.1", "[::1]", "localhost", "10.0.0.1"])
def test_this_machine_is_not_reached_unless_its_port_is_open(settings: Settings, name: str) -> None:
    settings.MCPHOST_EGRESS_LOOPBACK_PORTS = frozenset()
    assert "no address on the public internet" in refusal(f"https://{name}/c.json")
    assert "not among the allowed hosts" in refusal(f"https://{name}:8443/c.json")


def test_the_address_that_was_checked_is_the_one_that_is_reached(
    host: DocumentHost,
    authority: Authority,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A name is resolved once for a fetch: the answer to a second question changes nothing."""
    resolved = reach(host, authority, settings, monkeypatch)
    client_metadata.read_document(host.url)
    assert resolved == [NAME]
    reach(host, authority, settings, monkeypatch, {NAME: ["10.0.0.1"]})
    assert "no address on the public internet" in refusal(host.url)
    assert host.requests == ["/client.json"]


def test_a_host_with_another_certificate_is_refused(
    host: DocumentHost, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "certificate" in refusal(host.url.replace(NAME, "other.example"))
    assert host.requests == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("location", ["/moved.json", "https://other.example/", "http://10.0.0.1/"])
def test_a_redirect_is_not_followed(host: DocumentHost, status: int, location: str) -> None:
    host.status, host.headers = status, {"Location": location}
    assert refusal(host.url) == f"https://{NAME}:{host.port} redirects, which is not followed."
    assert host.requests == ["/client.json"]


@pytest.mark.parametrize("headers", [{}, {"Content-Length": "9999999"}])
def test_a_document_that_is_too_large_is_refused(
    host: DocumentHost, headers: dict[str, str]
) -> None:
    host.publish(padding="a" * MAX_DOCUMENT_BYTES)
    host.headers = headers
    assert f"more than {MAX_DOCUMENT_BYTES} bytes" in refusal(host.url)


def test_a_document_of_just_the_limit_is_read(host: DocumentHost) -> None:
    host.publish(padding="")
    host.publish(padding="a" * (MAX_DOCUMENT_BYTES - len(host.body)))
    assert len(host.body) == MAX_DOCUMENT_BYTES
    assert client_metadata.read_document(host.url).name == "Reader"


def test_a_host_that_does_not_answer_is_given_up(
    host: DocumentHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        client_metadata, "LIMITS", replace(client_metadata.LIMITS, total_seconds=0.5)
    )
    host.silent = True
    assert "did not answer within 0.5 s" in refusal(host.url)
    assert len(host.requests) == 1


@pytest.mark.parametrize("status", [201, 204, 400, 401, 403, 404, 429, 500, 503])
def test_every_status_but_200_is_refused_after_one_request(host: DocumentHost, status: int) -> None:
    host.status = status
    host.body = b"" if status == 204 else host.body
    assert f"status {status}" in refusal(host.url)
    assert len(host.requests) == 1


# What it says


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"null", b'"text"', b"{", b"<html></html>", b"\xff{}", b"[" * 5000, b'{"client_id": NaN}'],
)  # fmt: skip
def test_what_is_not_a_json_object_is_refused(host: DocumentHost, body: bytes) -> None:
    host.body = body
    assert refusal(host.url) == "It is not a JSON object."


@pytest.mark.parametrize("client_id", ["", "https://client.example/client.json", None, 1, ["a"]])
def test_a_document_must_name_its_own_url(host: DocumentHost, client_id: Any) -> None:
    host.publish(client_id=client_id)
    assert "describes another client" in refusal(host.url)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"token_endpoint_auth_method": None},
        {"token_endpoint_auth_method": "none"},
        {
            "token_endpoint_auth_method": "private_key_jwt",
            "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
        },
        {"grant_types": ["urn:ietf:params:oauth:grant-type:device_code", "authorization_code"]},
        {"scope": None, "contacts": None, "jwks": {"keys": []}, "unknown": [1]},
    ],
)
def test_documents_of_real_clients_are_read(host: DocumentHost, fields: dict[str, Any]) -> None:
    host.publish(**fields)
    assert client_metadata.read_document(host.url).name == "Reader"


@pytest.mark.parametrize(
    "fields",
    [
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"token_endpoint_auth_method": ["none"]},
        {
            "token_endpoint_auth_method": "private_key_jwt",
            "token_endpoint_auth_methods_supported": "none",
        },
    ],
)
def test_a_client_that_must_authenticate_is_refused(
    host: DocumentHost, fields: dict[str, Any]
) -> None:
    host.publish(**fields)
    assert "requires the client to authenticate" in refusal(host.url)


@pytest.mark.parametrize(
    "uris", [None, [], "http://127.0.0.1/cb", {"a": 1}, [1, None], ["javascript:alert(1)", "x"]]
)
def test_a_document_without_a_redirect_uri_that_may_be_used_is_refused(
    host: DocumentHost, uris: Any
) -> None:
    host.publish(redirect_uris=uris)
    assert "no redirect URI that may be used" in refusal(host.url)


def test_redirect_uris_that_may_not_be_used_are_left_out(host: DocumentHost) -> None:
    host.publish(
        redirect_uris=["app://x", "https://a.example/cb", "data:,x", "https://a.example/cb"]
    )
    assert client_metadata.read_document(host.url).redirect_uris == ("https://a.example/cb",)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("  Two \n words\t", "Two words"),
        ("\u202eevil\u0000", "evil"),
        ("a" * 101, "a" * 100),
        ("Zürich 東京", "Zürich 東京"),
        ("", ""),
        ("\u200b \n", ""),
        (None, ""),
        (["a"], ""),
    ],
)
def test_a_name_is_one_line_of_visible_text_or_the_host(
    host: DocumentHost, name: Any, shown: str
) -> None:
    host.publish(client_name=name)
    assert client_metadata.read_document(host.url).name == (shown or f"{NAME}:{host.port}")


# How long it is fresh


@pytest.mark.parametrize(
    ("value", "fresh"),
    [
        (None, timedelta(minutes=5)),
        ("", timedelta(minutes=5)),
        ("max-age=0", timedelta(minutes=5)),
        ("public, max-age=3600", timedelta(hours=1)),
        ('MAX-AGE="3600"', timedelta(hours=1)),
        ("max-age=31536000", timedelta(hours=24)),
        ("max-age=" + "9" * 5000, timedelta(hours=24)),
        ("max-age=-1", timedelta(minutes=5)),
        ("s-maxage=3600", timedelta(minutes=5)),
        ("no-store, max-age=3600", timedelta(minutes=5)),
        ("no-cache,max-age=3600", timedelta(minutes=5)),
    ],
)
def test_a_document_is_fresh_as_long_as_its_host_says_within_limits(
    host: DocumentHost, value: str | None, fresh: timedelta
) -> None:
    host.headers = {} if value is None else {"Cache-Control": value}
    assert client_metadata.read_document(host.url).fresh == fresh


def test_a_document_is_compared_with_the_url_byte_by_byte(host: DocumentHost) -> None:
    host.body = orjson.dumps(orjson.loads(host.body) | {"client_id": host.url + "?"})
    assert "describes another client" in refusal(host.url)
