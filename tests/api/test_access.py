"""Every operation, requested by everyone: each role, other tenants, staff, and broken credentials."""

from datetime import timedelta
from itertools import product
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone

from mcphost.identity.models import StaffToken, Token
from mcphost.identity.services import revoke
from mcphost.identity.staff_tokens import revoke_staff_token
from mcphost.tenants.roles import (
    READ_API,
    ROLE_PERMISSIONS,
    STAFF_PERMISSIONS,
    WRITE_API,
    Permission,
    Role,
)
from tests.api.client import ApiClient
from tests.api.conftest import ApiClients, api_token, staff_token
from tests.api.samples import SAMPLES
from tests.api.url_walk import ROUTES, Route, ids_of
from tests.cast import ACTOR, Cast

pytestmark = pytest.mark.django_db

READING = ("GET",)


@pytest.fixture
def ids(cast: Cast, clients: ApiClients) -> dict[str, Any]:
    return ids_of(cast.acme)


def send(client: ApiClient, route: Route, ids: dict[str, Any]) -> Any:
    """Request a route without what a change needs: admitted changes end with 422 or 428."""
    return client.send(route.method, route.path(ids), None)


def expected(
    route: Route, granted: frozenset[Permission], *, sees: bool, scopes: set[str]
) -> set[int]:
    """Return how a route may answer a caller with these permissions and scopes."""
    if (READ_API if route.method in READING else WRITE_API) not in scopes:
        return {403}
    if route.is_of_tenant and not sees:
        return {404}
    if route.operation.permission is not None and route.operation.permission not in granted:
        return {403}
    return {200} if route.method in READING else {422, 428}


def test_each_role_may_do_exactly_what_its_permissions_allow(
    cast: Cast, clients: ApiClients, ids: dict[str, Any]
) -> None:
    both = {READ_API, WRITE_API}
    callers = (
        (clients.owner, ROLE_PERMISSIONS[Role.OWNER], both),
        (clients.operator, ROLE_PERMISSIONS[Role.OPERATOR], both),
        (clients.auditor, ROLE_PERMISSIONS[Role.AUDITOR], {READ_API}),
        (clients.staff, STAFF_PERMISSIONS, both),
    )
    faults = []
    for route, (client, permissions, scopes) in product(ROUTES, callers):
        is_staff = client is clients.staff
        granted = permissions if route.is_of_tenant or is_staff else frozenset[Permission]()
        status = send(client, route, ids).status_code
        if status not in expected(route, granted, sees=True, scopes=scopes):
            faults.append((str(route), status, sorted(granted)))
    assert faults == []


def test_without_a_working_token_of_the_api_nothing_is_served(
    cast: Cast, clients: ApiClients, ids: dict[str, Any]
) -> None:
    expired, revoked = (api_token(cast, cast.owner) for _ in range(2))
    ended, former = staff_token(cast.staff), staff_token(cast.staff)
    past = timezone.now() - timedelta(seconds=1)
    Token.objects.filter(pk=expired.split("_")[1]).update(expires_at=past)
    StaffToken.objects.filter(pk=ended.split("_")[1]).update(expires_at=past)
    revoke(cast.acme.id, revoked.split("_")[1], actor=ACTOR)
    revoke_staff_token(former.split("_")[1], actor=ACTOR)
    basic = Client(headers={"Authorization": "Basic b3duZXI6cGFzc3dvcmQ="})
    callers = {
        "anonymous": ApiClient(),
        "nonsense": ApiClient("nonsense"),
        "of MCP": ApiClient(cast.owner.mcp_token),
        "mistyped": ApiClient(cast.owner.api_token[:-1] + "~"),
        "expired": ApiClient(expired),
        "revoked": ApiClient(revoked),
        "expired staff token": ApiClient(ended),
        "revoked staff token": ApiClient(former),
        "password": ApiClient(client=basic),
    }
    faults = []
    for route, (name, client) in product(ROUTES, callers.items()):
        response = send(client, route, ids)
        challenge = response.headers.get("WWW-Authenticate", "")
        if (
            response.status_code != 401
            or not challenge.startswith('Bearer realm="mcphost"')
            or response.json()["type"] != "urn:mcphost:problem:unauthenticated"
        ):
            faults.append((str(route), name, response.status_code))
    assert faults == []


def test_another_tenant_is_refused_exactly_as_one_that_does_not_exist(
    cast: Cast, clients: ApiClients, ids: dict[str, Any]
) -> None:
    faults = []
    for route in (route for route in ROUTES if route.is_of_tenant):
        answers = []
        for slug in ("acme", "nope"):
            response = send(clients.stranger, route, {**ids, "slug": slug})
            text = response.content.decode().replace(f"/tenants/{slug}", "")
            answers.append((response.status_code, sorted(response.headers), text))
        if answers[0] != answers[1] or answers[0][0] != 404:
            faults.append((str(route), answers))
    assert faults == []


def test_the_ids_of_another_tenant_are_unknown_in_the_own_one(
    cast: Cast, clients: ApiClients, ids: dict[str, Any]
) -> None:
    own, faults = ids_of(cast.globex), []
    by_id = [
        (route, name)
        for route in ROUTES
        for name in route.ids
        if route.is_of_tenant and name not in ("slug", "function")
        if route.operation.permission in ROLE_PERMISSIONS[Role.OWNER]
    ]
    for route, name in by_id:
        value = route.id_of(name, ids)
        foreign, unknown = str(value), "987654" if isinstance(value, int) else str(uuid4())
        answers = [
            clients.stranger.send(route.method, path, sample_body(route), etag="*")
            for path in (
                route.path(own).replace(str(route.id_of(name, own)), identity)
                for identity in (foreign, unknown)
            )
        ]
        texts = {
            answer.content.decode().replace(f"/{identity}", "")
            for answer, identity in zip(answers, (foreign, unknown), strict=True)
        }
        if [answer.status_code for answer in answers] != [404, 404] or len(texts) > 1:
            faults.append((str(route), name, texts))
    assert by_id
    assert faults == []


def sample_body(route: Route) -> Any:
    """Return a body that the operation accepts."""
    samples = [sample.creation for sample in SAMPLES if sample.path.endswith(f"/{route.types}")]
    if route.method == "PUT" and "primitive_id" in route.ids:
        return samples[0]
    if route.operation.example:
        return route.operation.example
    names = route.operation.body.model_fields
    return {"version_id": str(uuid4())} if "version_id" in names else {}


def test_a_session_of_the_console_reads_and_never_writes(
    cast: Cast, clients: ApiClients, ids: dict[str, Any]
) -> None:
    faults = []
    for person, sees in ((cast.owner, True), (cast.member, False), (cast.stranger, False)):
        browser = Client()
        browser.force_login(person.user)
        for route in ROUTES:
            granted = ROLE_PERMISSIONS[Role.OWNER] if sees else frozenset[Permission]()
            granted = granted if route.is_of_tenant else frozenset[Permission]()
            status = send(ApiClient(client=browser), route, ids).status_code
            if status not in expected(route, granted, sees=sees, scopes={READ_API}):
                faults.append((str(route), person.user.username, status))
    assert faults == []
