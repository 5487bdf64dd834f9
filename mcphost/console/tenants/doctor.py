"""Doctor: the steps of connecting to a tenant at this server's own address, as a client does.

Each step says in words what is wrong and which setting to change. Steps that need one that failed
are skipped. The token is real: Doctor registers as a client, is connected for the user who runs it,
redeems the code, and revokes its token at the end.
"""

import base64
import hashlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode, urlsplit

import orjson

from mcphost.console.tenants.doctor_client import (
    JSON,
    DoctorClient,
    DoctorTimeError,
    OwnServer,
    fields_of,
)
from mcphost.egress.errors import EgressAddressError, EgressError
from mcphost.egress.messages import ReceivedResponse
from mcphost.identity.oauth.addresses import RESOURCE_METADATA

REDIRECT: Final = "http://127.0.0.1/callback"
AUTHORIZATION_SERVER: Final = "/.well-known/oauth-authorization-server"
_FORM: Final = "application/x-www-form-urlencoded"
_WEB_PAGE: Final = "https://client.example"


class DoctorState(StrEnum):
    """What came of a step."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"


class DoctorFinding(NamedTuple):
    """What came of a step, in words."""

    title: str
    state: DoctorState
    text: str


class DoctorVerdict(NamedTuple):
    """What a run came to, in one sentence; `state` is that of its worst finding."""

    state: DoctorState
    text: str


def verdict(findings: Sequence[DoctorFinding]) -> DoctorVerdict:
    """Sum the findings of a run up: what failed is named."""
    titles = {
        state: [finding.title for finding in findings if finding.state is state]
        for state in DoctorState
    }
    failed, skipped = titles[DoctorState.FAILED], len(titles[DoctorState.SKIPPED])
    rest = f" {skipped} {'was' if skipped == 1 else 'were'} skipped." if skipped else ""
    if failed:
        text = f"{len(failed)} of {len(findings)} checks failed: {', '.join(failed)}.{rest}"
        return DoctorVerdict(DoctorState.FAILED, text)
    passed = f"{len(titles[DoctorState.OK])} checks passed."
    if skipped:
        return DoctorVerdict(DoctorState.SKIPPED, f"No check failed. {passed}{rest}")
    return DoctorVerdict(DoctorState.OK, f"All {passed}")


class StepFailedError(Exception):
    """A step failed. The message says what is wrong, and what to change."""


class StepSkippedError(Exception):
    """A step cannot be made. The message says why."""


class BrowserView(NamedTuple):
    """How the request that runs Doctor left the browser, and how it arrived.

    `origin` is the header Origin: what is in the browser's address bar; empty without it.
    """

    origin: str
    scheme: str
    host: str


Grant = Callable[[str, str], str]
"""Consents for the user to a registered client with a code challenge; returns the code.

Raises StepSkippedError if the user cannot."""


class Doctor:
    """One run: the steps in order, each of which may use what earlier ones have found."""

    def __init__(self, client: DoctorClient, view: BrowserView, *, public: bool) -> None:
        self._client = client
        self._server: OwnServer = client.server
        self._view = view
        self._public = public
        self._unanswered: EgressError | None = None
        self._client_id = self._token = ""
        self._grant: Grant | None = None

    @property
    def client_id(self) -> str:
        """The client that this run has registered; empty without one."""
        return self._client_id

    def examine(self, grant: Grant) -> Sequence[DoctorFinding]:
        """Make all steps; it takes at most TOTAL_SECONDS."""
        self._grant = grant
        findings: dict[str, DoctorFinding] = {}
        for title, needs, check in _STEPS:
            missing = [need for need in needs if findings[need].state is not DoctorState.OK]
            if missing:
                text = f"It needs the step “{missing[0]}”."
                findings[title] = DoctorFinding(title, DoctorState.SKIPPED, text)
            else:
                findings[title] = self._made(title, check)
        return tuple(findings.values())

    def _made(self, title: str, check: "Check") -> DoctorFinding:
        try:
            return DoctorFinding(title, DoctorState.OK, check(self))
        except StepFailedError as error:
            return DoctorFinding(title, DoctorState.FAILED, str(error))
        except StepSkippedError as error:
            return DoctorFinding(title, DoctorState.SKIPPED, str(error))
        except DoctorTimeError:
            text = "The time of this run is over: earlier steps were slow."
            return DoctorFinding(title, DoctorState.SKIPPED, text)
        except EgressError as error:
            return DoctorFinding(title, DoctorState.FAILED, str(error))

    def check_proxy(self) -> str:
        """Compare how the browser's request left with how it arrived."""
        view = self._view
        if view.origin in ("", "null"):
            raise StepSkippedError("The browser has not said which address it shows.")
        if view.origin != f"{view.scheme}://{view.host}":
            raise StepFailedError(
                f"Your browser shows {view.origin}, and this server sees {view.scheme}://{view.host}. "
                "Let the proxy pass Host and X-Forwarded-Proto on, and name its address in "
                "MCPHOST_PROXIES."
            )
        if view.origin != self._server.origin:
            raise StepFailedError(
                f"Your browser shows {view.origin}, and clients are told {self._server.origin}. Set "
                "MCPHOST_PUBLIC_URL to the address that clients use, or MCPHOST_HTTPS if only the "
                "scheme differs; or open the console at that address."
            )
        return f"The browser, this server and its metadata agree on {view.origin}."

    def check_dns(self) -> str:
        """Send the first request: without an address there is no connection."""
        host = urlsplit(self._server.origin).hostname
        try:
            self._client.send(AUTHORIZATION_SERVER, Accept=JSON)
        except EgressAddressError:
            raise StepFailedError(
                f"{host} has no address, or one in a private network. Check the DNS record. For a "
                "server in a private network set MCPHOST_PUBLIC_URL: then Doctor calls it there. "
                "Clients on the internet, such as claude.ai and ChatGPT, need a public address."
            ) from None
        except EgressError as error:
            self._unanswered = error
        return f"{host} resolves."

    def check_connection(self) -> str:
        """Report whether the first request got a response, over TLS if the address is https."""
        if self._unanswered is not None:
            raise StepFailedError(
                f"{self._unanswered} Check that the proxy listens at this address, its firewall, and its "
                "certificate: it must be of a known authority, for this name, and not expired. If it redirects, set "
                "MCPHOST_PUBLIC_URL to the address to which it does."
            )
        if self._server.origin.startswith("https:"):
            return "The certificate is valid."
        host = urlsplit(self._server.origin).hostname or ""
        if host in ("localhost", "127.0.0.1", "::1"):
            return "Connected without TLS, as clients on this machine may."
        raise StepFailedError(
            "The address is http. Clients refuse to sign in without TLS: put a proxy with a "
            "certificate in front, and set MCPHOST_HTTPS=1."
        )

    def check_host(self) -> str:
        """Call the endpoint without a token: the Host is checked first."""
        response = self._client.post("", "tools/list")
        if response.status == 403:
            host = urlsplit(self._server.origin).hostname
            raise StepFailedError(
                f"This server refuses its own name: add {host} to MCPHOST_ALLOWED_HOSTS."
            )
        if self._public and response.status == 200:
            return "The endpoint answers. The tenant is public: no token is needed."
        if response.status != 401:
            raise StepFailedError(_unexpected(response, 401))
        return "The endpoint answers, and demands a token."

    def check_web_pages(self) -> str:
        """Send the preflight of a web page of another origin."""
        response = self._client.send(
            f"/t/{self._server.slug}/mcp",
            "OPTIONS",
            Origin=_WEB_PAGE,
            Access_Control_Request_Method="POST",
            Access_Control_Request_Headers="authorization, content-type, mcp-protocol-version",
        )
        if response.status != 204 or response.header("access-control-allow-origin") != "*":
            raise StepFailedError(
                f"{_unexpected(response, 204)} Let the proxy pass OPTIONS on, and no headers of CORS of its own."
            )
        return (
            "Browsers get CORS answers. The setting “Allowed origins” decides which pages may send a "
            "token."
        )

    def check_challenge(self) -> str:
        """Check that a 401 says where to sign in."""
        if self._public:
            raise StepSkippedError("The tenant is public: clients are not asked to sign in.")
        challenge = self._client.post("", "tools/list").header("www-authenticate") or ""
        expected = f"{self._server.origin}{RESOURCE_METADATA}/t/{self._server.slug}/mcp"
        if f'resource_metadata="{expected}"' not in challenge:
            raise StepFailedError(
                f"The header WWW-Authenticate of the 401 does not name {expected}. Let the proxy pass "
                "this header and Host on unchanged, or set MCPHOST_PUBLIC_URL."
            )
        return "A client without a token is told where to sign in."

    def check_resource_metadata(self) -> str:
        """Read the metadata of the endpoint (RFC 9728)."""
        fields = self._document(f"{RESOURCE_METADATA}/t/{self._server.slug}/mcp")
        self._compare("resource", fields.get("resource"), self._server.url)
        servers = fields.get("authorization_servers")
        self._compare("authorization_servers", servers, [self._server.origin])
        return f"It names {self._server.url} and its authorization server."

    def check_server_metadata(self) -> str:
        """Read the metadata of the authorization server (RFC 8414)."""
        fields = self._document(AUTHORIZATION_SERVER)
        self._compare("issuer", fields.get("issuer"), self._server.origin)
        for name in ("authorization", "token", "registration", "revocation"):
            endpoint = str(fields.get(f"{name}_endpoint", ""))
            if not endpoint.startswith(f"{self._server.origin}/"):
                raise StepFailedError(f"The {name} endpoint is elsewhere: {endpoint[:200]}.")
        methods = fields.get("code_challenge_methods_supported")
        self._compare("code_challenge_methods_supported", methods, ["S256"])
        return "The issuer is this address, and all endpoints are below it."

    def check_registration(self) -> str:
        """Register as a client (RFC 7591)."""
        registration = {"client_name": "Doctor", "redirect_uris": [REDIRECT]}
        body = orjson.dumps(registration)
        response = self._client.send("/register", "POST", body, Content_Type=JSON)
        fields = fields_of(response) or {}
        if response.status == 429:
            raise StepSkippedError(str(fields.get("error_description", "")))
        if response.status != 201 or not isinstance(fields.get("client_id"), str):
            raise StepFailedError(_unexpected(response, 201))
        self._client_id = fields["client_id"]
        return "A client without a metadata document can register."

    def check_token(self) -> str:
        """Redeem a code of the user who runs Doctor, as a client does after the consent page."""
        assert self._grant is not None
        verifier = secrets.token_urlsafe(48)
        digest = hashlib.sha256(verifier.encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        code = self._grant(self._client_id, challenge)
        response = self._form(
            "/token",
            grant_type="authorization_code",
            code=code,
            redirect_uri=REDIRECT,
            code_verifier=verifier,
            resource=self._server.url,
        )
        token = (fields_of(response) or {}).get("access_token")
        if response.status != 200 or not isinstance(token, str):
            raise StepFailedError(_unexpected(response, 200))
        self._token = token
        return "A code was redeemed for a token that acts as you."

    def check_discover(self) -> str:
        """Ask what the server can do, on the stateless revision."""
        result = self._result(self._client.post(self._token, "server/discover"))
        return f"It answers on {', '.join(result.get('supportedVersions', ()))}."

    def check_session(self) -> str:
        """Begin and end a session of an older revision."""
        response = self._client.initialize(self._token)
        version = self._result(response).get("protocolVersion")
        session = response.header("mcp-session-id")
        if session is None:
            raise StepFailedError(
                "The response has no Mcp-Session-Id: let the proxy pass this header on."
            )
        self._client.end_session(self._token, session)
        return f"A session of {version} was begun and ended."

    def check_tools(self) -> str:
        """List the tools, as a client does first."""
        result = self._result(self._client.post(self._token, "tools/list"))
        count = len(result.get("tools", ()))
        if not count:
            return "The list is empty: no tool is published that you may use."
        return f"The first page has {count} tool{'s' if count > 1 else ''}."

    def check_revocation(self) -> str:
        """Revoke the token, and check that it no longer works."""
        response = self._form("/revoke", token=self._token)
        if response.status != 200:
            raise StepFailedError(_unexpected(response, 200))
        return "The token is revoked."

    def _document(self, path: str) -> Mapping[str, Any]:
        response = self._client.send(path, Accept=JSON)
        fields = fields_of(response)
        if response.status != 200 or fields is None:
            reason = _unexpected(response, 200)
            raise StepFailedError(f"{reason} Let the proxy pass /.well-known/ on to this server.")
        return fields

    def _form(self, path: str, **fields: str) -> ReceivedResponse:
        body = urlencode({"client_id": self._client_id, **fields}).encode()
        return self._client.send(path, "POST", body, Content_Type=_FORM)

    def _compare(self, name: str, value: object, expected: object) -> None:
        if value != expected:
            raise StepFailedError(
                f"{name} is {str(value)[:200]}, and must be {expected}. Set MCPHOST_PUBLIC_URL, or let "
                "the proxy pass Host on unchanged."
            )

    def _result(self, response: ReceivedResponse) -> Mapping[str, Any]:
        if response.status == 401:
            raise StepFailedError(
                "The token was refused. Let the proxy pass the header Authorization on. If the steps "
                "reached different servers, all must use one database."
            )
        result = (fields_of(response) or {}).get("result")
        if response.status != 200 or not isinstance(result, dict):
            raise StepFailedError(_unexpected(response, 200))
        return result


def _unexpected(response: ReceivedResponse, expected: int) -> str:
    """Say what a response is instead of the expected one."""
    if response.status in (502, 503, 504):
        return f"The answer is {response.status}: the proxy cannot reach this server, or it is overloaded."
    fields = fields_of(response)
    if fields is None:
        return (
            f"The answer is {response.status} and no JSON, instead of {expected}: something else than "
            "this server answers at this address."
        )
    error = fields.get("error_description") or fields.get("error") or ""
    return f"The answer is {response.status} instead of {expected}. {str(error)[:300]}".strip()


Check = Callable[[Doctor], str]
_DNS: Final = "DNS"
_CONNECTION: Final = "Connection and TLS"
_HOST: Final = "Host"
_REGISTRATION: Final = "Registration"
_TOKEN: Final = "Code and token"  # noqa: S105 - a title
_STEPS: Final[Sequence[tuple[str, Sequence[str], Check]]] = (
    ("Proxy", (), Doctor.check_proxy),
    (_DNS, (), Doctor.check_dns),
    (_CONNECTION, (_DNS,), Doctor.check_connection),
    (_HOST, (_CONNECTION,), Doctor.check_host),
    ("Web pages", (_CONNECTION,), Doctor.check_web_pages),
    ("Challenge", (_HOST,), Doctor.check_challenge),
    ("Metadata of the endpoint", (_CONNECTION,), Doctor.check_resource_metadata),
    ("Metadata of the authorization server", (_CONNECTION,), Doctor.check_server_metadata),
    (_REGISTRATION, (_CONNECTION,), Doctor.check_registration),
    (_TOKEN, (_REGISTRATION,), Doctor.check_token),
    ("server/discover", (_TOKEN,), Doctor.check_discover),
    ("Session", (_TOKEN,), Doctor.check_session),
    ("tools/list", (_TOKEN,), Doctor.check_tools),
    ("Revocation", (_TOKEN,), Doctor.check_revocation),
)
