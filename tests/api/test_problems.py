"""Every refusal is a problem in JSON (RFC 9457), for programs and browsers alike."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from django.db import OperationalError

from mcphost.api.problems import MEDIA_TYPE, ProblemType
from mcphost.api.resources import tenants
from mcphost.kinds.script.kind import script_kind
from mcphost.observability.availability import availability
from mcphost.sandbox.check_slots import ChecksBusyError
from tests.api.client import ApiClient
from tests.api.conftest import ApiClients
from tests.api.samples import SAMPLES

pytestmark = pytest.mark.django_db

TOOLS = next(sample for sample in SAMPLES if sample.path.endswith("tools"))
MEMBERS = ["type", "title", "status", "detail", "instance"]


def checked(response: Any, problem: ProblemType) -> Any:
    """Check the form of a problem; return its members."""
    assert response.headers["Content-Type"] == MEDIA_TYPE
    assert response.headers["Cache-Control"] == "no-store"
    members = response.json()
    assert [name for name in members if name != "errors"] == MEMBERS
    assert members["type"] == f"urn:mcphost:problem:{problem.code}"
    assert response.status_code == members["status"] == problem.status
    assert members["instance"] == quote(response.wsgi_request.path)
    assert members["detail"].endswith((".", ")"))
    for fault in members.get("errors", ()):
        assert set(fault) == {"pointer", "code", "detail"}
    return members


@pytest.mark.parametrize(
    "path",
    [
        "/api/",
        "/api/v1",
        "/api/v1/",
        "/api/v2/tenants",
        "/api/v1/tenants/",
        "/api/x.html",
        "/api/ü ?",
    ],
)
@pytest.mark.parametrize("accept", ["", "text/html", "application/xml"])
def test_an_unknown_address_is_a_problem_with_and_without_a_token(
    clients: ApiClients, path: str, accept: str
) -> None:
    headers = {"Accept": accept} if accept else {}
    for client in (clients.owner, clients.anonymous):
        for method in ("GET", "POST", "DELETE"):
            checked(client.send(method, path, **headers), ProblemType.NOT_FOUND)


def test_methods_that_an_address_lacks_are_refused(owner: ApiClient) -> None:
    for method in ("DELETE", "PATCH", "OPTIONS", "TRACE"):
        response = owner.send(method, "/api/v1/tenants")
        checked(response, ProblemType.METHOD)
        assert response.headers["Allow"] == "GET, POST, HEAD"


def test_other_types_of_media_are_refused(owner: ApiClient) -> None:
    for accept in ("text/html", "application/xml"):
        checked(owner.get("/api/v1/tenants", Accept=accept), ProblemType.NOT_ACCEPTABLE)
    for accept in ("*/*", "application/json", "text/html, application/*;q=0.1"):
        assert owner.get("/api/v1/tenants", Accept=accept).status_code == 200
    for media_type in ("text/plain", "application/x-www-form-urlencoded", "application/yaml"):
        response = owner.send("POST", TOOLS.path, TOOLS.creation, **{"Content-Type": media_type})
        checked(response, ProblemType.MEDIA_TYPE)
    assert owner.get(TOOLS.path).json()["items"] == []


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b'{"name": nan}',
        b'"\\ud800"',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"config":' + b'{"a":' * 100 + b"1" + b"}" * 101,
        b'{"config": {"number": 123456789012345678901234567890}}',
    ],
    ids=["cut", "nan", "surrogate", "bytes", "brackets", "deep", "number"],
)
def test_a_body_that_cannot_be_read_exactly_is_refused(owner: ApiClient, body: bytes) -> None:
    checked(owner.send("POST", TOOLS.path, body), ProblemType.MALFORMED)


@pytest.mark.parametrize("body", [[], "text", 5, None])
def test_a_body_that_is_no_object_is_refused(owner: ApiClient, body: Any) -> None:
    encoded = b"null" if body is None else body
    for method, path in (("POST", TOOLS.path), ("PUT", "/api/v1/tenants/acme")):
        checked(owner.send(method, path, encoded, etag="*"), ProblemType.INVALID)
    checked(owner.send("PATCH", "/api/v1/tenants/acme", encoded, etag="*"), ProblemType.INVALID)


def test_problems_of_the_service_point_to_their_fields(owner: ApiClient) -> None:
    wrong = {
        **TOOLS.creation,
        "name": "two words",
        "time_limit_seconds": -1,
        "config": {"request": {"url": "ftp://api.example.com", "colour": "red"}},
    }
    members = checked(owner.send("POST", TOOLS.path, wrong), ProblemType.INVALID)
    pointers = {fault["pointer"] for fault in members["errors"]}
    assert pointers >= {"/name", "/time_limit_seconds", "/config/request/colour"}
    members = checked(owner.send("POST", TOOLS.path, {}), ProblemType.INVALID)
    assert [(fault["pointer"], fault["code"]) for fault in members["errors"]] == [
        ("/name", "missing"),
        ("/kind", "missing"),
        ("/config", "missing"),
    ]
    for text in ("a\0b", "\x1b"):
        response = owner.send("POST", TOOLS.path, {**TOOLS.creation, "title": text})
        members = checked(response, ProblemType.INVALID)
        assert members["errors"][0]["pointer"] == "/title"


def test_a_state_that_does_not_allow_a_verb_is_a_conflict(owner: ApiClient) -> None:
    path, _ = owner.made(TOOLS.path, TOOLS.creation)
    members = checked(owner.send("POST", f"{path}/disable", {}, etag="*"), ProblemType.CONFLICT)
    assert members["errors"] == [
        {"pointer": "/state", "code": "state", "detail": "cannot disable first: it is draft."}
    ]
    owner.send("POST", f"{path}/publish", {}, etag="*")
    response = owner.send("POST", f"{path}/publish", {}, etag="*")
    assert checked(response, ProblemType.CONFLICT)["errors"][0]["code"] == "unchanged"
    checked(owner.send("DELETE", path, etag="*"), ProblemType.CONFLICT)


def test_the_language_of_the_client_changes_nothing(owner: ApiClient) -> None:
    for path in ("/api/v1/tenants/acme", "/api/v1/tenants?x=1"):
        plain = owner.get(path)
        german = owner.get(path, **{"Accept-Language": "de-DE, de;q=0.9"})
        assert plain.content == german.content
        assert "Content-Language" not in german.headers


def test_times_are_in_utc_with_a_z(owner: ApiClient) -> None:
    tool = owner.made(TOOLS.path, TOOLS.creation)[1].json()
    times = (tool["created_at"], tool["updated_at"])
    assert all(time.endswith("Z") and "T" in time for time in times)


def test_a_database_that_is_away_is_503(owner: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(availability, "probe", None)

    def fail(*_: Any, **__: Any) -> None:
        raise OperationalError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(tenants, "snapshot", fail)
        response = owner.get("/api/v1/tenants/acme")
    checked(response, ProblemType.UNAVAILABLE)
    assert response.headers["Retry-After"] == "2"
    availability.forget()


@pytest.mark.parametrize(
    "time",
    [
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-23:59",
        "2030-01-01T00:00:00",
        "2030-01-01",
        "2030",
        "-1",
    ],
)
def test_a_time_outside_of_the_calendar_or_without_a_zone_is_refused(
    owner: ApiClient, time: str
) -> None:
    for resource in ("calls", "entries", "refusals"):
        for name in ("since", "until"):
            path = f"/api/v1/tenants/acme/{resource}?{name}={quote(time)}"
            members = checked(owner.get(path), ProblemType.PARAMETERS)
            assert [fault["pointer"] for fault in members["errors"]] == [name]
    body = {"name": "laptop", "scopes": ["mcp:call"], "expires_at": time}
    members = checked(owner.send("POST", "/api/v1/tenants/acme/tokens", body), ProblemType.INVALID)
    assert [fault["pointer"] for fault in members["errors"]] == ["/expires_at"]


def test_a_number_is_no_time(owner: ApiClient) -> None:
    body = {"name": "laptop", "scopes": ["mcp:call"], "expires_at": 4102444800}
    checked(owner.send("POST", "/api/v1/tenants/acme/tokens", body), ProblemType.INVALID)


@pytest.mark.parametrize("number", [2**31, 2**63 - 1, 2**63, 10**40])
def test_a_member_whose_number_is_too_large_is_unknown(owner: ApiClient, number: int) -> None:
    checked(owner.get(f"/api/v1/tenants/acme/members/{number}"), ProblemType.NOT_FOUND)


def test_a_problem_is_short_however_much_is_wrong(owner: ApiClient) -> None:
    hosts = {"name": "key", "value": "s3cret-v4lue", "places": ["header"], "hosts": [1] * 5000}
    response = owner.send("POST", "/api/v1/tenants/acme/secrets", hosts)
    members = checked(response, ProblemType.INVALID)
    assert (len(members["errors"]), members["errors"][99]["pointer"]) == (100, "/hosts/99")
    assert members["detail"].endswith("The first 100 of 5000 are listed.")
    response = owner.send("POST", TOOLS.path, {**TOOLS.creation, "x" * 100_000: 1})
    checked(response, ProblemType.INVALID)
    assert len(response.content) < 1000
    number = b'{"name": ' + b"1" * 100_000 + b"}"
    response = owner.send("POST", TOOLS.path, number)
    checked(response, ProblemType.MALFORMED)
    assert len(response.content) < 1000


@pytest.mark.parametrize("part", ["%00", "a%00b"])
def test_an_id_with_a_character_that_no_text_may_have_is_unknown(
    clients: ApiClients, part: str
) -> None:
    for path in ("tenants/acme/tokens", "tenants/acme/functions", "keys"):
        checked(clients.staff.get(f"/api/v1/{path}/{part}"), ProblemType.NOT_FOUND)


SCRIPT_CODE = 'def greet(name: str) -> str:\n    """Greets."""\n    return name\n'
SCRIPT_TOOL = {"name": "greet", "kind": "script", "config": {"code": SCRIPT_CODE}}


@pytest.fixture
def busy_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every check of a script is refused, as while those of others have all slots."""

    def refuse(*arguments: Any) -> Any:
        raise ChecksBusyError("Other scripts are checked now.")

    monkeypatch.setattr(script_kind.sandbox, "check", refuse)


@pytest.mark.usefixtures("busy_checks")
def test_a_script_that_cannot_be_checked_now_is_unavailable_and_not_invalid(
    owner: ApiClient,
) -> None:
    content = json.dumps(
        {"format": 1, "tools": {"greet": {"kind": "script", "config": SCRIPT_TOOL["config"]}}}
    )
    for path, body in (
        (TOOLS.path, SCRIPT_TOOL),
        ("/api/v1/tenants/acme/file/plan", {"content": content}),
    ):
        response = owner.send("POST", path, body)
        problem = checked(response, ProblemType.UNAVAILABLE)
        assert response.headers["Retry-After"] == "2"
        assert problem["detail"].startswith("Other scripts are checked now.")
        assert "errors" not in problem
    assert owner.get(TOOLS.path).json()["items"] == []


@pytest.mark.usefixtures("busy_checks")
def test_a_file_that_is_wrong_besides_is_invalid(owner: ApiClient) -> None:
    tools = {
        "greet": {"kind": "script", "config": SCRIPT_TOOL["config"]},
        "wrong": {"kind": "http", "config": {}},
    }
    content = json.dumps({"format": 1, "tools": tools})
    response = owner.send("POST", "/api/v1/tenants/acme/file/plan", {"content": content})
    checked(response, ProblemType.INVALID)
