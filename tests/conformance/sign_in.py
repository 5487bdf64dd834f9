"""The suite as a client of the authorization server: it registers, and a person at a browser allows it."""

import json
import urllib.request
from pathlib import Path
from urllib.error import URLError

from tests.conformance import suite
from tests.e2e.admin import Admin
from tests.e2e.handmade_calls import wait_until
from tests.e2e.processes import Server, free_port

SECONDS = 30
AS_BROWSER = {"Accept": "text/html"}


def run(server: Server, output: Path) -> str:
    """Run the suite's scenarios for authorization servers. Raises SuiteError."""
    port = free_port()
    client_id = _register(server.base, f"http://127.0.0.1:{port}/callback")
    person = Admin(server.port, (server.home / "admin-password").read_text().strip())

    def sign_in(url: str) -> None:
        person.allow(url)
        # The browser follows the redirect to the suite, which prints the URL before it listens.
        callback = urllib.request.Request(person.location, headers=AS_BROWSER)
        wait_until(lambda: _is_followed(callback))

    return suite.run_authorization(server.base, client_id, server.url, port, output, sign_in)


def _is_followed(callback: urllib.request.Request) -> bool:
    try:
        urllib.request.urlopen(callback, timeout=SECONDS).close()
    except URLError as error:
        if isinstance(error.reason, ConnectionRefusedError):
            return False
        raise
    return True


def _register(issuer: str, redirect_uri: str) -> str:
    fields = {"client_name": "Conformance suite", "redirect_uris": [redirect_uri]}
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{issuer}/register", json.dumps(fields).encode(), headers)
    with urllib.request.urlopen(request, timeout=SECONDS) as response:
        client_id: str = json.load(response)["client_id"]
    return client_id
