"""Tests of static files: versions in URLs, caching, compression."""

import gzip
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.templatetags.static import static
from django.test import Client

from mcphost.console.static_files import FOR_GOOD, version_of

CSS = "console/console.css"

pytestmark = pytest.mark.django_db  # a response that is closed closes the database's connections


def content(name: str) -> bytes:
    return Path(finders.find(name) or pytest.fail(name)).read_bytes()


def test_a_static_file_with_its_version_in_the_url_is_cached_forever() -> None:
    url = static(CSS)
    assert url == f"/static/{CSS}?v={version_of(CSS)}"
    response = Client().get(url)
    assert (response.status_code, response["Cache-Control"]) == (200, FOR_GOOD)
    assert b"".join(response.streaming_content) == content(CSS)
    response.close()


@pytest.mark.parametrize("accepted", ["gzip, deflate, br", "*", "br,gzip"])
def test_text_files_are_compressed_for_clients_that_accept_gzip(accepted: str) -> None:
    response = Client(headers={"accept-encoding": accepted}).get(static(CSS))
    assert response["Content-Encoding"] == "gzip"
    assert int(response["Content-Length"]) == len(response.content) < len(content(CSS)) / 2
    assert gzip.decompress(response.content) == content(CSS)
    assert response["Cache-Control"] == FOR_GOOD
    assert response["Content-Type"].startswith("text/css")
    assert response["Vary"] == "Accept-Encoding"


def test_a_missing_static_file_has_no_version_and_is_not_found() -> None:
    assert static("console/nothing.css") == "/static/console/nothing.css"
    assert Client().get("/static/console/nothing.css").status_code == 404
    assert Client().get("/static/../mcphost/settings.py").status_code == 404
