"""Tests of static files: versions in URLs, caching, compression."""

import gzip
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.http import HttpResponse
from django.templatetags.static import static
from django.test import Client

from mcphost.console.static_files import FOR_GOOD, version_of

CSS = "console/console.css"

pytestmark = pytest.mark.django_db  # a response that is closed closes the database's connections


def content(name: str) -> bytes:
    return Path(finders.find(name) or pytest.fail(name)).read_bytes()


def test_a_file_is_cached_for_good_under_the_url_with_its_version() -> None:
    url = static(CSS)
    assert url == f"/static/{CSS}?v={version_of(CSS)}"
    response = Client().get(url)
    assert (response.status_code, response["Cache-Control"]) == (200, FOR_GOOD)
    assert b"".join(response.streaming_content) == content(CSS)
    response.close()


@pytest.mark.parametrize("accepted", ["gzip, deflate, br", "*", "br,gzip"])
def test_text_is_compressed_for_clients_that_take_it(accepted: str) -> None:
    response = Client(headers={"accept-encoding": accepted}).get(static(CSS))
    assert response["Content-Encoding"] == "gzip"
    assert int(response["Content-Length"]) == len(response.content) < len(content(CSS)) / 2
    assert gzip.decompress(response.content) == content(CSS)
    assert response["Cache-Control"] == FOR_GOOD
    assert response["Content-Type"].startswith("text/css")
    assert response["Vary"] == "Accept-Encoding"


def _get(accepted: str, **headers: str) -> HttpResponse:
    response = Client(headers={"accept-encoding": accepted, **headers}).get(static(CSS))
    response.close()
    return response


@pytest.mark.parametrize("accepted", ["gzip", ""])
def test_a_browser_that_has_the_file_gets_no_body(accepted: str) -> None:
    etag, modified = (_get(accepted)[name] for name in ("ETag", "Last-Modified"))
    for known in ({"if-none-match": etag}, {"if-modified-since": modified}):
        again = _get(accepted, **known)
        assert (again.status_code, again["ETag"]) == (304, etag)
        assert again["Vary"] == "Accept-Encoding"
    assert _get(accepted, **{"if-none-match": '"other"'}).status_code == 200


def test_the_compressed_file_has_an_etag_of_its_own() -> None:
    """Caches and range requests must not mix the two forms of a file."""
    packed, plain = _get("gzip")["ETag"], _get("")["ETag"]
    assert packed == plain[:-1] + '-gzip"'
    assert _get("gzip", **{"if-none-match": plain}).status_code == 200
    assert _get("", **{"if-none-match": packed}).status_code == 200
    assert _get("gzip", **{"if-none-match": f'"x", W/{packed}'}).status_code == 304


def test_what_is_missing_has_no_version_and_is_not_found() -> None:
    assert static("console/nothing.css") == "/static/console/nothing.css"
    assert Client().get("/static/console/nothing.css").status_code == 404
    assert Client().get("/static/../mcphost/settings.py").status_code == 404
