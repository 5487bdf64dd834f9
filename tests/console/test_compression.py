"""Which pages are compressed: none that shows a secret or a payload, and none that repeats what was sent."""

import gzip

import pytest
from django.test import Client
from django.urls import URLPattern, get_resolver

from mcphost.console.compression import COMPRESSED
from tests.console.tenant_data import Things

pytestmark = pytest.mark.django_db

LIST = "/admin/t/acme/tools/"


def encoding(client: Client, path: str, accepted: str = "gzip") -> str:
    response = client.get(path, headers={"accept-encoding": accepted})
    assert response.status_code == 200
    return str(response.get("Content-Encoding", ""))


@pytest.mark.parametrize("path", [LIST, f"{LIST}new/?kind=http", "/admin/t/acme/"])
def test_pages_without_secrets_are_compressed(staff: Client, acme: Things, path: str) -> None:
    response = staff.get(path, headers={"accept-encoding": "gzip"})
    assert response["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in response["Vary"]
    assert b"</html>" in gzip.decompress(response.content)
    assert encoding(staff, path, "identity") == ""


@pytest.mark.parametrize(
    "path", [f"{LIST}?q=e", f"{LIST}new/?kind=http&x=1", "/admin/you/", "/admin/t/acme/tokens/new/"]
)
def test_pages_that_repeat_what_was_sent_or_can_show_secrets_are_not(
    staff: Client, acme: Things, path: str
) -> None:
    assert encoding(staff, path) == ""


def test_payloads_are_not_compressed(auditor: Client, acme: Things) -> None:
    call = f"/admin/t/acme/calls/{acme.call}/"
    for path in (call, f"{call}payloads/"):
        assert encoding(auditor, path) == ""


def test_every_listed_page_exists() -> None:
    names = {
        pattern.name
        for pattern in get_resolver("mcphost.console.urls").url_patterns
        if isinstance(pattern, URLPattern)
    }
    assert names >= COMPRESSED
