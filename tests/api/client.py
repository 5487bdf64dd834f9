"""A client of the API: Django's, with a token and JSON."""

from collections.abc import Mapping
from typing import Any

import orjson
from django.test import Client

JSON = "application/json"


class ApiClient:
    """Sends requests with a token; without one, with the session of `client`."""

    def __init__(self, token: str = "", client: Client | None = None) -> None:
        self._client = client or Client()
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def send(
        self, method: str, path: str, body: Any = None, *, etag: str = "", **headers: str
    ) -> Any:
        """Send a request and return the response. Headers are written with underscores."""
        sent = {**self._headers, **{name.replace("_", "-"): text for name, text in headers.items()}}
        if etag:
            sent["If-Match"] = etag
        content = b"" if body is None else body if isinstance(body, bytes) else orjson.dumps(body)
        media_type = sent.pop("Content-Type", JSON)
        return self._client.generic(method, path, content, content_type=media_type, headers=sent)

    def get(self, path: str, **headers: str) -> Any:
        return self.send("GET", path, **headers)

    def made(self, path: str, body: Mapping[str, Any], **headers: str) -> tuple[str, Any]:
        """Create an object; return its address and the response."""
        response = self.send("POST", path, body, **headers)
        assert response.status_code == 201, response.content
        return response.headers["Location"], response

    def etag(self, path: str) -> str:
        """Return the ETag of an object."""
        tag: str = self.get(path).headers["ETag"]
        return tag
