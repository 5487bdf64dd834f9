"""Static files, cached for good under a URL with their version, and compressed.

Nothing has to be collected or built: files are served from their source folders. `{% static %}`
appends the version, a digest of the content. A browser that has a file of that version asks for it
no more; after an upgrade the version, and so the URL, is another one. Text is compressed at its
first request, once in each process.
"""

import gzip
import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import patch_vary_headers
from whitenoise.middleware import WhiteNoiseMiddleware

FOR_GOOD = "public, max-age=31536000, immutable"
_TEXTS = ("text/", "application/javascript", "application/json", "image/svg+xml")
_MAX_FILES = 1024
_DIGITS = 12


class VersionedStorage(StaticFilesStorage):
    """URLs of static files with the version of the file."""

    def url(self, name: str | None) -> str:
        url = super().url(name)
        version = version_of(name or "")
        return f"{url}?v={version}" if version else url


class StaticFilesMiddleware(WhiteNoiseMiddleware):
    """Serve static files; see the module."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        file = self.files.get(request.path_info)
        if file is None:
            default_response: HttpResponseBase = super().__call__(request)
            return default_response
        name = request.path_info.removeprefix(self.static_prefix)
        response = self._compressed(file, request, name)
        if response is None:
            response = self.serve(file, request)
        if response.status_code == 304 or response.get("Content-Type", "").startswith(_TEXTS):
            patch_vary_headers(response, ("Accept-Encoding",))
        if response.status_code in (200, 304) and request.GET.get("v") == version_of(name):
            response["Cache-Control"] = FOR_GOOD
        return response

    def _compressed(self, file: Any, request: HttpRequest, name: str) -> HttpResponseBase | None:
        """Return the compressed file; None if the client is to get it as it is, or not at all."""
        offered = request.headers.get("Accept-Encoding", "").replace(" ", "").split(",")
        takes = {"gzip", "*"}.intersection(offered) and "Range" not in request.headers
        if request.method not in ("GET", "HEAD") or not takes:
            return None
        # Asked for the headers, without conditions, the file is not opened.
        headers = dict(file.get_response("HEAD", {}).headers)
        if not headers["Content-Type"].startswith(_TEXTS):
            return None
        # Another form of the file, so another ETag (RFC 9110, 8.8.3.3).
        headers["ETag"] = f'{headers["ETag"][:-1]}-gzip"'
        if _has(request, headers["ETag"], file):
            kept = {name: headers[name] for name in ("Cache-Control", "ETag", "Last-Modified")}
            return HttpResponse(status=304, headers=kept)
        body = _packed(name)
        length = {"Content-Encoding": "gzip", "Content-Length": str(len(body))}
        return HttpResponse(body, headers={**headers, **length})


def _has(request: HttpRequest, etag: str, file: Any) -> bool:
    """Return whether the client has the file in this form."""
    cached_etags = request.headers.get("If-None-Match")
    if cached_etags is not None:
        return etag in (
            cached_etag.strip().removeprefix("W/") for cached_etag in cached_etags.split(",")
        )
    return bool(file.is_not_modified({**request.META, "HTTP_IF_NONE_MATCH": None}))


@lru_cache(_MAX_FILES)
def version_of(name: str) -> str:
    """Return the version of a static file: the beginning of its SHA-256; empty if there is none."""
    path = finders.find(name)
    if not path:
        return ""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:_DIGITS]


@lru_cache(_MAX_FILES)
def _packed(name: str) -> bytes:
    return gzip.compress(Path(finders.find(name) or "").read_bytes(), mtime=0)
