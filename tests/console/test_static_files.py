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


@pytest.mark.parametrize("version", ["", "?v=", "?v=000000000000"])
def test_under_another_url_it_is_cached_for_a_while(version: str) -> None:
    response = Client().get(f"/static/{CSS}{version}")
    response.close()
    assert response["Cache-Control"] == "max-age=3600, public"


@pytest.mark.parametrize("accepted", ["gzip, deflate, br", "*", "br,gzip"])
def test_text_is_compressed_for_clients_that_take_it(accepted: str) -> None:
    response = Client(headers={"accept-encoding": accepted}).get(static(CSS))
    assert response["Content-Encoding"] == "gzip"
    assert int(response["Content-Length"]) == len(response.content) < len(content(CSS)) / 2
    assert gzip.decompress(response.content) == content(CSS)
    assert response["Cache-Control"] == FOR_GOOD
    assert response["Content-Type"].startswith("text/css")
    assert response["Vary"] == "Accept-Encoding"


@pytest.mark.parametrize("accepted", ["", "br", "gzip;q=0"])
def test_other_clients_get_it_as_it_is(accepted: str) -> None:
    response = Client(headers={"accept-encoding": accepted}).get(static(CSS))
    response.close()
    assert "Content-Encoding" not in response
    assert response["Vary"] == "Accept-Encoding"


def test_a_font_is_not_compressed_again() -> None:
    font = next(
        path
        for finder in finders.get_finders()
        for path, _ in finder.list(None)
        if path.endswith(".woff2")
    )
    response = Client(headers={"accept-encoding": "gzip"}).get(f"/static/{font}")
    assert response.status_code == 200
    response.close()
    assert "Content-Encoding" not in response


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


def test_a_part_of_a_file_is_of_its_plain_form() -> None:
    part = _get("gzip", range="bytes=0-9")
    assert (part.status_code, part["ETag"]) == (206, _get("")["ETag"])
    assert "Content-Encoding" not in part


def test_headers_alone_are_those_of_the_file() -> None:
    head = Client(headers={"accept-encoding": "gzip"}).head(static(CSS))
    assert head["Content-Length"] == _get("gzip")["Content-Length"]
    assert head["ETag"] == _get("gzip")["ETag"]


def test_what_is_missing_has_no_version_and_is_not_found() -> None:
    assert static("console/nothing.css") == "/static/console/nothing.css"
    assert Client().get("/static/console/nothing.css").status_code == 404
    assert Client().get("/static/../mcphost/settings.py").status_code == 404
