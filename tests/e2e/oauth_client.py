"""A client that signs in step by step, by hand: each step may go to another process."""

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.e2e import raw
from tests.e2e.desktops import Consenter
from tests.e2e.processes import Server
from tests.e2e.raw import Reply
from tests.oauth import CHALLENGE, VERIFIER

FORM = "application/x-www-form-urlencoded"
REDIRECT = "http://127.0.0.1:41234/callback"


@dataclass
class HandmadeClient:
    """A client, and the person who uses it. `server` is where the next request goes."""

    server: Server
    name: str = "By hand"
    state: str = "a-state"
    resource: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    client_id: str = ""
    code: str = ""
    tokens: dict[str, Any] = field(default_factory=dict)
    person: Consenter | None = None

    def discover(self) -> None:
        """Read what the 401 names, and what that names."""
        refused = self.call("echo", text="nobody")
        assert refused.status == 401
        address = refused.headers["www-authenticate"].partition('resource_metadata="')[2]
        resource = self._get(address.partition('"')[0])
        self.resource = resource["resource"]
        (issuer,) = resource["authorization_servers"]
        self.metadata = self._get(f"{issuer}/.well-known/oauth-authorization-server")
        assert self.metadata["issuer"] == issuer

    def register(self) -> None:
        wanted = {"client_name": self.name, "redirect_uris": [REDIRECT]}
        body = json.dumps(wanted).encode()
        reply = raw.send(self.server, "POST", "/register", body, Content_Type="application/json")
        assert reply.status == 201, reply.body
        self.client_id = reply.json["client_id"]

    def open(self) -> None:
        """Open the page without a session: it asks the person to sign in."""
        reply = raw.send(self.server, "GET", self.page, Accept="text/html")
        assert reply.status == 302
        assert urlsplit(reply.headers["location"]).path.startswith("/admin/")

    def sign_in(self) -> None:
        self.person = Consenter(self.server)

    def read_page(self) -> None:
        assert self.person is not None
        assert self.name in self.person.admin.get(self.page)

    def consent(self) -> None:
        assert self.person is not None
        query = parse_qs(urlsplit(self.person.allow(self.page)).query)
        assert query["state"] == [self.state]
        assert query["iss"] == [self.metadata["issuer"]]
        (self.code,) = query["code"]

    def redeem(self) -> None:
        reply = self.send_code()
        assert reply.status == 200, reply.body
        self.tokens = reply.json

    def send_code(self, **other: str) -> Reply:
        grant = {
            "grant_type": "authorization_code",
            "client_id": self.client_id,
            "code": self.code,
            "redirect_uri": REDIRECT,
            "code_verifier": VERIFIER,
        }
        return self.post_form("/token", {**grant, **other})

    def use(self) -> None:
        reply = self.call("echo", text="by hand")
        assert reply.status == 200, reply.body
        assert reply.message["result"]["content"][0]["text"] == "by hand"

    def refresh(self) -> None:
        reply = self.send_refresh(self.tokens["refresh_token"])
        assert reply.status == 200, reply.body
        assert reply.json["access_token"] != self.tokens["access_token"]
        self.tokens = reply.json

    def send_refresh(self, refresh_token: str) -> Reply:
        grant = {"grant_type": "refresh_token", "client_id": self.client_id}
        return self.post_form("/token", {**grant, "refresh_token": refresh_token})

    def call(self, tool: str, **arguments: Any) -> Reply:
        return raw.post(self.server, raw.call(tool, arguments), self.tokens.get("access_token"))

    def post_form(self, path: str, form: dict[str, str]) -> Reply:
        return raw.send(self.server, "POST", path, urlencode(form).encode(), Content_Type=FORM)

    def connect(self) -> None:
        """Do all steps up to the tokens."""
        for step in (self.discover, self.register, self.sign_in, self.consent, self.redeem):
            step()

    @property
    def page(self) -> str:
        query = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": REDIRECT,
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "state": self.state,
            "scope": "mcp:list mcp:call",
            "resource": self.resource,
        }
        return f"/authorize?{urlencode(query)}"

    def _get(self, address: str) -> dict[str, Any]:
        parts = urlsplit(address)
        assert parts.port == self.server.port
        reply = raw.send(self.server, "GET", parts.path)
        assert reply.status == 200
        document: dict[str, Any] = reply.json
        return document
