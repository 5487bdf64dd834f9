"""How clients with the official Python SDK sign in: with the browser of the desktop, `xdg-open`.

Tokens are kept in a file, so that the next start of the client needs no person.
"""

import asyncio
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from queue import Queue
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

try:
    from mcp.client.auth import AuthorizationCodeResult
except ImportError:  # before 2.0 it is a tuple
    AuthorizationCodeResult = None

PATIENCE = 60


class Keychain:
    """What the client has registered as, and its tokens, in a file of JSON."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    async def get_tokens(self) -> OAuthToken | None:
        kept = self._read().get("tokens")
        return OAuthToken.model_validate(kept) if kept else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._write("tokens", tokens)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        kept = self._read().get("client")
        return OAuthClientInformationFull.model_validate(kept) if kept else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._write("client", client_info)

    def _read(self) -> dict[str, Any]:
        return json.loads(self._path.read_text()) if self._path.exists() else {}

    def _write(self, name: str, model: Any) -> None:
        kept = {**self._read(), name: model.model_dump(mode="json", exclude_none=True)}
        self._path.write_text(json.dumps(kept))


class Callback:
    """The client's own server, to which the browser comes back."""

    def __init__(self) -> None:
        came_back: Queue[dict[str, list[str]]] = Queue()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                if parts.path == "/callback":
                    came_back.put(parse_qs(parts.query))
                self.send_response(200)
                self.send_header("Content-Length", "4")
                self.end_headers()
                self.wfile.write(b"Done")

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._came_back = came_back
        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/callback"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    async def open(self, url: str) -> None:
        process = await asyncio.create_subprocess_exec("xdg-open", url)
        await process.wait()

    async def wait(self) -> Any:
        query = await asyncio.to_thread(self._came_back.get, timeout=PATIENCE)
        values = {name: value for name, (value,) in query.items()}
        if AuthorizationCodeResult is None:
            return values["code"], values["state"]
        return AuthorizationCodeResult(
            code=values["code"], state=values["state"], iss=values.get("iss")
        )


def provider(url: str, keychain: str) -> OAuthClientProvider:
    """Return what signs requests to `url` in. `keychain` is the path of a file."""
    callback = Callback()
    metadata = OAuthClientMetadata(
        client_name="A client in Python",
        redirect_uris=[callback.url],
        grant_types=["authorization_code", "refresh_token"],
        token_endpoint_auth_method="none",
    )
    return OAuthClientProvider(url, metadata, Keychain(keychain), callback.open, callback.wait)
