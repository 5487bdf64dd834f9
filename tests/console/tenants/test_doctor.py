"""Tests of Doctor: what it says of a server that answers wrongly, and what it may reach."""

import socket
from collections.abc import Iterator

import orjson
import pytest
from django.test import Client
from pytest_django import Settings

from mcphost.audit.models import Entry
from mcphost.console.tenants import doctor_client
from mcphost.console.tenants.doctor import (
    BrowserView,
    Doctor,
    DoctorFinding,
    DoctorState,
    StepSkippedError,
    verdict,
)
from mcphost.console.tenants.doctor_client import DoctorClient, OwnServer
from mcphost.identity.models import OAuthClient
from tests.cast import Cast
from tests.console.conftest import Browser
from tests.console.tenants.answering_server import (
    AUTHORIZATION_SERVER,
    ENDPOINT,
    RESOURCE,
    AnsweringServer,
    Canned,
    answering_server,
)

PAGE = "/admin/t/acme/connect/"
DOCTOR = f"{PAGE}doctor/"
FAILED, OK, SKIPPED = DoctorState.FAILED, DoctorState.OK, DoctorState.SKIPPED


@pytest.fixture
def answering() -> Iterator[AnsweringServer]:
    with answering_server() as server:
        yield server


def own(origin: str, port: int | str) -> OwnServer:
    return OwnServer.of(origin, "acme", str(port))


def examined(
    answering: AnsweringServer, view: BrowserView | None = None, *, public: bool = False
) -> dict[str, DoctorFinding]:
    """Return what Doctor finds, by the titles of the steps."""
    server = own(answering.origin, answering.port)
    view = view or BrowserView(answering.origin, "http", answering.origin.removeprefix("http://"))
    with DoctorClient(server) as client:
        findings = Doctor(client, view, public=public).examine(lambda *_: "code")
    return {finding.title: finding for finding in findings}


def test_each_step_is_made_against_a_server_that_answers_rightly(
    answering: AnsweringServer,
) -> None:
    findings = examined(answering)
    assert {finding.state for finding in findings.values()} == {OK}
    assert len(findings) == 14
    assert "2026-07-28" in findings["server/discover"].text
    assert "has 1 tool." in findings["tools/list"].text
    assert ("DELETE", ENDPOINT) in answering.requests
    assert answering.requests[-1] == ("POST", "/revoke")


HTML = Canned(200, b"<html>", (("Content-Type", "text/html"),))
WRONG_ISSUER = Canned(200, orjson.dumps({"issuer": "https://other.example"}))
FAULTS = {
    "no token, Host": ("no token", Canned(403), "Host", "MCPHOST_ALLOWED_HOSTS"),
    "no token, 404": ("no token", Canned(404, b"{}"), "Host", "404 instead of 401"),
    "challenge": ("no token", Canned(401, b"{}"), "Challenge", "WWW-Authenticate"),
    "preflight": ("OPTIONS", Canned(405), "Web pages", "pass OPTIONS on"),
    "resource": (RESOURCE, HTML, "Metadata of the endpoint", "/.well-known/"),
    "resource 502": (RESOURCE, Canned(502), "Metadata of the endpoint", "cannot reach this server"),
    "issuer": (
        AUTHORIZATION_SERVER,
        WRONG_ISSUER,
        "Metadata of the authorization server",
        "issuer is https://other.example, and must be http://127.0.0.1",
    ),
    "registration": ("/register", HTML, "Registration", "something else than this server"),
    "token": (
        "/token",
        Canned(400, b'{"error": "invalid_grant"}'),
        "Code and token",
        "400 instead of 200. invalid_grant",
    ),
    "authorization": ("server/discover", Canned(401), "server/discover", "Authorization"),
    "session": (
        "initialize",
        Canned(200, b'{"result": {"protocolVersion": "2025-11-25"}}'),
        "Session",
        "Mcp-Session-Id",
    ),
    "list": ("tools/list", Canned(500, b"{}"), "tools/list", "500 instead of 200"),
    "revocation": ("/revoke", Canned(500, b"{}"), "Revocation", "500 instead of 200"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_a_server_answers_wrongly_is_said_in_words(
    answering: AnsweringServer, fault: str
) -> None:
    key, canned, title, text = FAULTS[fault]
    answering.changed[key] = canned
    finding = examined(answering)[title]
    assert finding.state is FAILED
    assert text in finding.text


def test_a_run_is_summed_up_by_its_worst_finding() -> None:
    findings = [DoctorFinding(title, OK, "") for title in ("DNS", "Host", "Session")]
    assert verdict(findings) == (OK, "All 3 checks passed.")
    findings[2] = DoctorFinding("Session", SKIPPED, "")
    assert verdict(findings) == (SKIPPED, "No check failed. 2 checks passed. 1 was skipped.")
    findings[1] = DoctorFinding("Host", FAILED, "")
    assert verdict(findings) == (FAILED, "1 of 3 checks failed: Host. 1 was skipped.")


def test_steps_that_need_a_failed_one_are_skipped(answering: AnsweringServer) -> None:
    answering.changed["/register"] = Canned(429, b'{"error_description": "At most 20 an hour."}')
    findings = examined(answering)
    assert findings["Registration"] == DoctorFinding("Registration", SKIPPED, "At most 20 an hour.")
    assert findings["tools/list"].state is SKIPPED
    assert "Code and token" in findings["tools/list"].text
    assert findings["Metadata of the endpoint"].state is OK


def test_a_public_tenant_needs_no_token(answering: AnsweringServer) -> None:
    answering.changed["no token"] = Canned(200, b"{}")
    findings = examined(answering, public=True)
    assert findings["Host"].state is OK
    assert findings["Challenge"].state is SKIPPED


def test_a_user_without_a_role_has_no_token(answering: AnsweringServer) -> None:
    def refuse(*_: str) -> str:
        raise StepSkippedError("You have no role in this tenant.")

    server = own(answering.origin, answering.port)
    with DoctorClient(server) as client:
        findings = Doctor(client, BrowserView("", "http", ""), public=False).examine(refuse)
    by_title = {finding.title: finding for finding in findings}
    assert by_title["Code and token"].text == "You have no role in this tenant."
    assert by_title["server/discover"].state is SKIPPED
    assert by_title["Proxy"].state is SKIPPED


def test_what_a_proxy_does_not_pass_on_is_named(answering: AnsweringServer) -> None:
    host = answering.origin.removeprefix("http://")
    seen = examined(answering, BrowserView(f"https://{host}", "http", host))["Proxy"]
    assert seen.state is FAILED
    assert "X-Forwarded-Proto" in seen.text
    assert "MCPHOST_PROXIES" in seen.text
    seen = examined(answering, BrowserView("http://other.example", "http", "other.example"))[
        "Proxy"
    ]
    assert "MCPHOST_PUBLIC_URL" in seen.text


def test_without_a_listener_only_the_address_is_found(answering: AnsweringServer) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    findings = examined(AnsweringServer(port))
    assert findings["DNS"].state is OK
    assert findings["Connection and TLS"].state is FAILED
    assert "firewall" in findings["Connection and TLS"].text
    assert findings["Registration"].state is SKIPPED


def test_a_run_ends_when_its_time_is_over(
    answering: AnsweringServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_client, "TOTAL_SECONDS", 0.0)
    findings = examined(answering)
    assert findings["DNS"].state is SKIPPED
    assert "time of this run is over" in findings["DNS"].text
    assert answering.requests == []


def test_only_the_server_itself_may_be_reached_without_a_public_address(
    settings: Settings,
) -> None:
    """The Host of a request is the sender's choice: it must not lead to other ports of this machine."""
    assert own("http://127.0.0.1:8000", 8000).reached is not None
    assert own("http://[::1]:8000", 8000).reached is not None
    for origin in ("http://127.0.0.1:6379", "http://localhost", "https://intern.example:8000"):
        assert own(origin, 8000).reached is None
    settings.MCPHOST_PUBLIC_URL = "https://intern.example"
    target = own("https://intern.example", 8000).reached
    assert target is not None
    assert (target.host, target.port) == ("intern.example", 443)


def test_another_port_of_this_machine_is_not_called(answering: AnsweringServer) -> None:
    server = own(answering.origin, answering.port + 1)
    with DoctorClient(server) as client:
        findings = Doctor(client, BrowserView("", "", ""), public=False).examine(lambda *_: "")
    by_title = {finding.title: finding for finding in findings}
    assert by_title["DNS"].state is FAILED
    assert "MCPHOST_PUBLIC_URL" in by_title["DNS"].text
    assert answering.requests == []


def test_a_redirect_is_not_followed(answering: AnsweringServer) -> None:
    with answering_server() as other:
        to_other = Canned(302, headers=(("Location", f"{other.origin}/"),))
        answering.changed[AUTHORIZATION_SERVER] = to_other
        finding = examined(answering)["Connection and TLS"]
        assert finding.state is FAILED
        assert "If it redirects" in finding.text
        assert other.requests == []


@pytest.mark.django_db
def test_operators_run_doctor_and_not_twice_at_once(
    cast: Cast, browse: Browser, settings: Settings
) -> None:
    settings.MCPHOST_PUBLIC_URL = "http://127.0.0.1:1"  # where nothing listens
    operator = browse(cast.operator)
    assert "Run Doctor" in operator.get(PAGE).content.decode()
    assert "Run Doctor" in operator.get(DOCTOR).content.decode()
    page = operator.post(DOCTOR).content.decode()
    assert "What Doctor found" in page
    assert "cannot be connected to" in page
    assert "Wait half a minute" in browse(cast.owner).post(DOCTOR).content.decode()
    assert not OAuthClient.objects.exists()
    assert not Entry.objects.filter(action="connection.consented").exists()


@pytest.mark.django_db
def test_a_host_that_is_no_name_is_said(cast: Cast, browse: Browser, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    page = browse(cast.operator).post(DOCTOR, headers={"host": "a..b"}).content.decode()
    assert "http://a..b is no address" in page
    assert "MCPHOST_PUBLIC_URL" in page


@pytest.mark.django_db
def test_others_cannot_run_doctor(cast: Cast, browse: Browser) -> None:
    for person in (cast.auditor, cast.stranger):
        assert browse(person).post(DOCTOR).status_code == 403
    assert "/login/" in browse(cast.member).post(DOCTOR)["Location"]
    assert 'id="doctor"' not in browse(cast.auditor).get(PAGE).content.decode()
    assert "/login/" in Client().post(DOCTOR)["Location"]
