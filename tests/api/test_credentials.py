"""What a token may do: it depends on its owner's role today, on its tenant, and on its kind."""

from secrets import token_bytes

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from mcphost.audit import last_use
from mcphost.audit.models import Entry
from mcphost.identity.models import StaffToken, Token
from mcphost.identity.tokens import _checksum as checksum
from mcphost.identity.tokens import new
from mcphost.tenants.models import Membership
from mcphost.tenants.roles import READ_API, WRITE_API, Role
from mcphost.tenants.services import remove_member, set_member
from tests.api.client import ApiClient
from tests.api.conftest import ApiClients, api_token, staff_token
from tests.api.samples import SAMPLES
from tests.cast import ACTOR, Cast
from tests.console.concurrent_changes import before_the_change

pytestmark = pytest.mark.django_db

TOOLS = next(sample for sample in SAMPLES if sample.path.endswith("tools"))


def guessed(token: str) -> str:
    """Return a token with the id of another one, and a secret of its own."""
    prefix, _, secret, _ = new(token_bytes).split("_")
    body = "_".join((prefix, token.split("_")[1], secret))
    return f"{body}_{checksum(body.encode())}"


def test_the_id_of_a_token_is_not_enough(cast: Cast, clients: ApiClients) -> None:
    for token in (cast.owner.api_token, staff_token(cast.staff)):
        assert ApiClient(token).get("/api/v1/tenants").status_code == 200
        assert ApiClient(guessed(token)).get("/api/v1/tenants").status_code == 401


def test_a_right_that_is_lost_before_the_change_refuses_it(cast: Cast, clients: ApiClients) -> None:
    path = "/api/v1/tenants/acme"

    def demote() -> None:
        Membership.objects.filter(user=cast.owner.user).update(role=Role.AUDITOR)

    etag = clients.owner.etag(path)
    with before_the_change(demote):
        response = clients.owner.send("PATCH", path, {"title": "Mine"}, etag=etag)
    assert (response.status_code, response.json()["type"]) == (403, "urn:mcphost:problem:forbidden")
    assert clients.staff.get(path).json()["title"] == "Acme"


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


def test_a_token_needs_the_scope_whatever_its_owner_may_do(cast: Cast, clients: ApiClients) -> None:
    reader = ApiClient(api_token(cast, cast.owner, READ_API))
    writer = ApiClient(api_token(cast, cast.owner, WRITE_API))
    path, change = "/api/v1/tenants/acme", {"title": "Written"}
    response = reader.send("PATCH", path, change, etag="*")
    assert response.status_code == 403
    assert response.headers["WWW-Authenticate"].endswith('scope="api:write"')
    assert (reader.get(path).status_code, writer.get(path).status_code) == (200, 403)
    assert writer.send("PATCH", path, change, etag="*").status_code == 200


def test_a_tool_is_found_only_in_its_own_tenant(clients: ApiClients) -> None:
    path, _ = clients.owner.made(TOOLS.path, TOOLS.creation)
    for elsewhere in (path.replace("acme", "globex"), path.replace("tools", "prompts")):
        assert clients.staff.get(path).status_code == 200
        assert clients.staff.get(elsewhere).status_code == 404
    assert clients.stranger.get(path.replace("acme", "globex")).status_code == 404


def test_an_operator_changes_tools_and_not_the_tenant(clients: ApiClients) -> None:
    clients.operator.made(TOOLS.path, TOOLS.creation)
    response = clients.operator.send("PATCH", "/api/v1/tenants/acme", {"title": "Mine"}, etag="*")
    assert response.status_code == 403
    assert clients.auditor.send("POST", TOOLS.path, TOOLS.creation).status_code == 403


def test_tokens_that_people_issue_in_the_console_work(cast: Cast, clients: ApiClients) -> None:
    fields = {"name": "script", "audience": "api", "scopes": ["api:read"], "expires_at": "30"}
    for person, expected in ((cast.owner, {"api:read", "api:write"}), (cast.auditor, {"api:read"})):
        browser = Client()
        browser.force_login(person.user)
        page = browser.get("/admin/you/t/acme/tokens/new/")
        offered = {scope for scope, _ in page.context["form"].fields["scopes"].choices}
        assert {scope for scope in offered if scope.startswith("api:")} == expected
        issued = browser.post("/admin/you/t/acme/tokens/new/", fields).context["token"]
        response = ApiClient(issued.plaintext).get("/api/v1/tenants/acme")
        assert (response.status_code, response.json()["slug"]) == (200, "acme")


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


def test_the_last_use_of_each_kind_of_token_is_noted(cast: Cast, clients: ApiClients) -> None:
    for client in (clients.owner, clients.staff):
        assert client.send("HEAD", "/api/v1/tenants/acme").status_code == 200
    last_use.flush(timezone.now())
    token = Token.objects.get(pk=cast.owner.api_token.split("_")[1])
    assert None not in (token.last_used_at, StaffToken.objects.get().last_used_at)
