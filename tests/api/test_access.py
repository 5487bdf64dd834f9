"""Every operation, requested by everyone: each role, other tenants, staff, and broken credentials."""

from datetime import timedelta
from itertools import product
from secrets import token_bytes
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from mcphost.audit.models import Entry
from mcphost.identity.models import StaffToken, Token
from mcphost.identity.services import revoke
from mcphost.identity.staff_tokens import revoke_staff_token
from mcphost.identity.tokens import _checksum as checksum
from mcphost.identity.tokens import new
from mcphost.tenants.models import Membership
from mcphost.tenants.roles import (
    READ_API,
    ROLE_PERMISSIONS,
    STAFF_PERMISSIONS,
    WRITE_API,
    Permission,
    Role,
)
from mcphost.tenants.services import remove_member, set_member
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
        "guessed staff token": ApiClient(guessed(staff_token(cast.staff))),
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


def guessed(token: str) -> str:
    """Return a token with the id of another one, and a secret of its own."""
    text = new(token_bytes)
    prefix, _, secret, _ = text.split("_")
    body = "_".join((prefix, token.split("_")[1], secret))
    return f"{body}_{checksum(body.encode())}"


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


def test_a_role_that_was_taken_away_counts_at_the_next_request(
    cast: Cast, clients: ApiClients
) -> None:
    path, change = "/api/v1/tenants/acme", {"title": "Taken over"}
    set_member(cast.acme.id, cast.operator.user, Role.AUDITOR, actor=ACTOR)
    assert clients.operator.get(path).status_code == 200
    assert clients.operator.send("POST", f"{path}/tools", change).status_code == 403
    set_member(cast.acme.id, cast.operator.user, Role.MEMBER, actor=ACTOR)
    response = clients.operator.get(path)
    assert response.status_code == 403
    assert response.headers["WWW-Authenticate"].endswith(
        'error="insufficient_scope", scope="api:read"'
    )
    remove_member(cast.acme.id, cast.operator.user, actor=ACTOR)
    assert clients.operator.get(path).status_code == 401
    User.objects.filter(pk=cast.owner.user.pk).update(is_active=False)
    assert clients.owner.get(path).status_code == 401
    User.objects.filter(pk=cast.staff.user.pk).update(is_staff=False)
    assert clients.staff.get(path).status_code == 401


def test_the_token_of_a_tenant_gives_staff_no_more_than_their_role(
    cast: Cast, clients: ApiClients
) -> None:
    set_member(cast.acme.id, cast.staff.user, Role.OPERATOR, actor=ACTOR)
    client = ApiClient(api_token(cast, cast.staff))
    assert client.get("/api/v1/tenants/acme").status_code == 200
    assert client.get("/api/v1/tenants/globex").status_code == 404
    assert client.send("PUT", "/api/v1/tenants/acme", {}, etag="*").status_code == 403
    assert client.send("POST", "/api/v1/tenants", {}).status_code == 403
    assert [item["slug"] for item in client.get("/api/v1/tenants").json()["items"]] == ["acme"]


def test_a_token_reaches_only_its_own_tenant(cast: Cast, clients: ApiClients) -> None:
    set_member(cast.globex.id, cast.owner.user, Role.OWNER, actor=ACTOR)
    assert Membership.objects.filter(user=cast.owner.user).count() == 2
    assert clients.owner.get("/api/v1/tenants/globex").status_code == 404
    items = clients.owner.get("/api/v1/tenants").json()["items"]
    assert [item["slug"] for item in items] == ["acme"]
    items = clients.staff.get("/api/v1/tenants").json()["items"]
    assert [item["slug"] for item in items] == ["acme", "commons", "globex"]


def test_entries_name_the_user_and_the_token_of_a_change(cast: Cast, clients: ApiClients) -> None:
    for client, name in ((clients.owner, "owner"), (clients.staff, "staff token")):
        path = "/api/v1/tenants/acme"
        response = client.send("PATCH", path, {"title": f"By {name}"}, etag=client.etag(path))
        assert response.status_code == 200
    by_owner, by_staff = Entry.objects.filter(action="tenant.updated").order_by("id")
    assert (by_owner.actor_kind, by_owner.actor_id) == ("person", str(cast.owner.user.pk))
    assert by_owner.token_id == cast.owner.api_token.split("_")[1]
    assert by_owner.actor_label == "owner (“owner's script”, issued by owner)"
    assert by_staff.actor_label == "staff (“automation”, staff token)"
    assert by_staff.token_id


def test_a_closed_tenant_is_read_and_not_changed(cast: Cast, clients: ApiClients) -> None:
    path = "/api/v1/tenants/acme"
    response = clients.staff.send("POST", f"{path}/close", etag=clients.staff.etag(path))
    assert response.status_code == 200
    assert response.json()["closed_at"].endswith("Z")
    assert clients.owner.get(path).status_code == 401  # its tokens have ended
    assert clients.staff.get(path).content == response.content
    assert clients.staff.send("POST", f"{path}/tools", {}).status_code == 403
    assert clients.staff.send("PUT", path, {"title": "Again"}, etag="*").status_code == 403
