"""What single resources of the API do: tokens, secrets, keys, calls, the audit log, members, functions."""

from datetime import timedelta
from typing import Any, get_args

import pytest
from django.utils import timezone

from mcphost.api.resources.calls import CallQuery
from mcphost.audit.models import Entry, Payload
from mcphost.console.records.filters import MADE_BY, OUTCOMES, QUESTIONS
from mcphost.identity.selectors import authenticate
from mcphost.tenants.models import Membership
from mcphost.tenants.roles import Audience
from mcphost.vault.services import ensure_ring
from tests.api.client import ApiClient
from tests.api.conftest import ApiClients
from tests.audit.recorded_calls import Story, follow, keep
from tests.cast import Cast

pytestmark = pytest.mark.django_db

ACME = "/api/v1/tenants/acme"
TOKEN = {"name": "laptop", "scopes": ["mcp:call", "mcp:list"]}


def act(client: ApiClient, path: str, body: Any = None) -> Any:
    """Send a conditional POST to an object's `path/verb`, with its present ETag."""
    single = path.rpartition("/")[0]
    return client.send("POST", path, body, etag=client.etag(single))


# --- tokens ---


def test_an_issued_token_is_shown_once_and_works(owner: ApiClient) -> None:
    path, response = owner.made(f"{ACME}/tokens", TOKEN, Idempotency_Key="first")
    text = response.json()["token"]
    authenticated = authenticate(text, Audience.MCP, "acme")
    assert authenticated is not None
    assert authenticated.principal.token_id == response.json()["id"]
    assert text not in owner.get(path).content.decode()
    assert text not in owner.get(f"{ACME}/tokens").content.decode()
    replay = owner.send("POST", f"{ACME}/tokens", TOKEN, Idempotency_Key="first")
    assert replay.headers["Idempotent-Replayed"] == "true"
    assert replay.json() == {**response.json(), "token": None}


def test_a_token_is_renewed_and_revoked(owner: ApiClient) -> None:
    path, first = owner.made(f"{ACME}/tokens", TOKEN)
    renewed = act(owner, f"{path}/renew", {"expires_at": "2099-01-01T00:00:00Z"})
    assert renewed.status_code == 200, renewed.content
    assert renewed.json()["id"] != first.json()["id"]
    assert renewed.json()["expires_at"] == "2099-01-01T00:00:00Z"
    revoked = act(owner, f"{path}/revoke", {"stolen": True})
    assert revoked.json()["revoked_at"] is not None
    for token in (first, renewed):
        assert authenticate(token.json()["token"], Audience.MCP, "acme") is None
    assert owner.get(f"{path}/use").json() == {"last_used_at": None, "state": "revoked"}


def test_a_token_of_a_service_account_is_issued_by_its_id(owner: ApiClient) -> None:
    path, account = owner.made(f"{ACME}/service_accounts", {"name": "ci"})
    body = {**TOKEN, "service_account_id": account.json()["id"]}
    _, token = owner.made(f"{ACME}/tokens", body)
    assert token.json()["owner"] == "service account ci"
    assert act(owner, f"{path}/disable").json()["disabled_at"] is not None
    assert authenticate(token.json()["token"], Audience.MCP, "acme") is None
    assert act(owner, f"{path}/enable").json()["disabled_at"] is None
    deletion = owner.send("DELETE", path, etag=owner.etag(path))
    assert (deletion.status_code, owner.get(path).status_code) == (204, 404)
    response = owner.send("POST", f"{ACME}/tokens", body)
    assert response.status_code == 422
    assert response.json()["errors"][0]["pointer"] == "/owner"


def test_a_token_with_a_scope_that_its_owner_may_not_take_is_refused(owner: ApiClient) -> None:
    for body in ({**TOKEN, "audience": "api"}, {**TOKEN, "scopes": ["everything"]}):
        response = owner.send("POST", f"{ACME}/tokens", body)
        assert response.status_code == 422, body
        assert response.json()["errors"][0]["pointer"].startswith("/scopes")


def test_tokens_are_listed_in_pages_the_newest_first(owner: ApiClient) -> None:
    ids = [owner.made(f"{ACME}/tokens", TOKEN)[1].json()["id"] for _ in range(3)]
    first = owner.get(f"{ACME}/tokens?limit=2").json()
    assert [item["id"] for item in first["items"]] == ids[:0:-1]
    rest = owner.get(f"{ACME}/tokens?limit=2&cursor={first['next']}").json()
    assert rest["items"][0]["id"] == ids[0]


# --- secrets ---

SECRET = {
    "name": "orders_key",
    "value": "c4nary-v4lue",
    "hosts": ["a.example"],
    "places": ["header"],
}


def test_the_value_of_a_secret_is_written_and_never_read(owner: ApiClient) -> None:
    path, created = owner.made(f"{ACME}/secrets", SECRET)
    rotated = owner.send("PATCH", path, {"value": "c4nary-tw0-x"}, etag=owner.etag(path))
    assert rotated.json()["version"] == 2
    refused = owner.send("PATCH", path, {"value": "c4nary"}, etag=owner.etag(path))
    assert refused.status_code == 422
    shown = [created, rotated, refused, owner.get(path), owner.get(f"{ACME}/secrets")]
    assert not any(b"c4nary" in response.content for response in shown)
    facts = [row.facts for row in Entry.objects.filter(action__startswith="secret.")]
    assert "c4nary" not in str(facts)


def test_a_secret_is_sent_to_more_places_only_by_those_who_know_its_value(owner: ApiClient) -> None:
    path, _ = owner.made(f"{ACME}/secrets", SECRET)
    wider = {"hosts": ["a.example", "b.example"]}
    response = owner.send("PATCH", path, wider, etag=owner.etag(path))
    assert (response.status_code, response.json()["errors"][0]["pointer"]) == (422, "/value")
    wider = {**wider, "value": "c4nary-v4lue"}
    assert owner.send("PATCH", path, wider, etag=owner.etag(path)).status_code == 200
    assert owner.get(f"{path}/use").json() == {"last_used_at": None}
    assert owner.send("DELETE", path, etag=owner.etag(path)).status_code == 204
    assert owner.get(path).status_code == 404


# --- keys ---


def test_staff_rotate_retire_and_destroy_keys(clients: ApiClients) -> None:
    staff, active = clients.staff, ensure_ring()
    refused = staff.send("POST", "/api/v1/keys", {"replaces": "k-another", "compromised": True})
    assert refused.status_code == 409
    path, created = staff.made("/api/v1/keys", {"replaces": active, "compromised": True})
    assert created.json()["state"] == "active"
    old = f"/api/v1/keys/{active}"
    assert staff.get(old).json()["state"] == "retired"
    assert staff.get(f"{old}/use").json()["in_flight"] == 0
    assert act(staff, f"{path}/destroy").status_code == 409
    assert act(staff, f"{old}/destroy").json()["state"] == "destroyed"
    ids = [item["id"] for item in staff.get("/api/v1/keys").json()["items"]]
    assert ids == [created.json()["id"], active]
    page = staff.get("/api/v1/keys?limit=1").json()
    rest = staff.get(f"/api/v1/keys?limit=1&cursor={page['next']}").json()
    assert [item["id"] for item in rest["items"]] == [active]
    assert rest["next"] is None


# --- calls and the audit log ---


def calls_of(cast: Cast, *scripts: str, target: str = "refund") -> list[Story]:
    at = timezone.now() - timedelta(minutes=25)
    stories = [
        Story.of(cast.acme.id, target, at=at + timedelta(minutes=10 * number)).play(script)
        for number, script in enumerate(scripts)
    ]
    keep(*stories)
    follow()
    return stories


def test_the_values_of_filters_are_those_of_the_console() -> None:
    for name, values in (("state", OUTCOMES), ("input_requests", QUESTIONS), ("made_by", MADE_BY)):
        choices, _ = get_args(CallQuery.model_fields[name].annotation)
        assert set(get_args(choices)) == set(values)


def test_calls_are_listed_filtered_and_read_with_their_rounds(
    cast: Cast, clients: ApiClients
) -> None:
    done, waiting = calls_of(cast, "start; ask q; back; start; answer q; end", "start; ask a b")
    listed = clients.auditor.get(f"{ACME}/calls").json()
    assert [item["id"] for item in listed["items"]] == [str(waiting.call.id), str(done.call.id)]
    assert listed["items"][0]["waiting"] == ["a", "b"]
    assert listed["items"][1]["input_requests"] == 1
    open_calls = clients.operator.get(f"{ACME}/calls?state=open&target=refund").json()["items"]
    assert [item["id"] for item in open_calls] == [str(waiting.call.id)]
    assert clients.owner.get(f"{ACME}/calls?client=nothing").json() == {"items": [], "next": None}
    expected = {
        "input_requests=asked": [waiting, done],
        "input_requests=accept": [done],
        "input_requests=refused": [],
        "made_by=clients": [waiting, done],
        "made_by=trials": [],
        "words=nothing": [],
        "state=no_error": [waiting, done],
    }
    for query, stories in expected.items():
        items = clients.owner.get(f"{ACME}/calls?{query}").json()["items"]
        assert [item["id"] for item in items] == [str(story.call.id) for story in stories], query
    history = clients.owner.get(f"{ACME}/calls/{done.call.id}").json()
    assert history["state"] == "complete"
    assert [entry["action"] for entry in history["entries"]] == [row.action for row in done.made]
    first = clients.owner.get(f"{ACME}/calls?limit=1").json()
    rest = clients.owner.get(f"{ACME}/calls?limit=1&cursor={first['next']}").json()
    assert [item["id"] for item in rest["items"]] == [str(done.call.id)]
    assert clients.owner.get(f"{ACME}/entries?cursor={first['next']}").status_code == 400


def test_each_payload_that_an_auditor_reads_is_recorded(cast: Cast, clients: ApiClients) -> None:
    (story,) = calls_of(cast, "start; end")
    entry = story.made[-1].id
    Payload.objects.create(entry=entry, tenant=cast.acme.id, key_id="lost", ciphertext=b"x")
    path = f"{ACME}/calls/{story.call.id}/payloads"
    assert clients.owner.get(path).status_code == 403
    assert not Entry.objects.filter(action="payload.viewed").exists()
    (payload,) = clients.auditor.get(path).json()["payloads"]
    assert (payload["entry"], payload["content"]) == (str(entry), None)
    assert payload["problem"]
    viewed = Entry.objects.get(action="payload.viewed")
    assert (viewed.target, viewed.actor_id) == (str(entry), str(cast.auditor.user.pk))


def test_a_waiting_call_is_cancelled_with_a_reason(cast: Cast, clients: ApiClients) -> None:
    done, waiting = calls_of(cast, "start; end", "start; ask q")
    for reason in ("", "   ", "x" * 301):
        path = f"{ACME}/calls/{waiting.call.id}/cancel"
        assert clients.operator.send("POST", path, {"reason": reason}).status_code == 422
    path = f"{ACME}/calls/{done.call.id}/cancel"
    assert clients.operator.send("POST", path, {"reason": "late"}).status_code == 409
    path = f"{ACME}/calls/{waiting.call.id}/cancel"
    response = clients.operator.send("POST", path, {"reason": "The order was withdrawn."})
    assert response.status_code == 200, response.content
    assert response.json()["state"] == "cancelled"
    entry = Entry.objects.get(action="call.cancelled", call=waiting.call.id)
    assert entry.reason == "The order was withdrawn."
    assert clients.operator.send("POST", path, {"reason": "again"}).status_code == 409


def test_the_audit_log_is_filtered_by_action_and_time(cast: Cast, clients: ApiClients) -> None:
    clients.owner.made(f"{ACME}/secrets", SECRET)
    clients.owner.made(f"{ACME}/tokens", TOKEN)
    items = clients.auditor.get(f"{ACME}/entries?action=secret.").json()["items"]
    assert [(item["action"], item["actor"]["id"]) for item in items] == [
        ("secret.created", str(cast.owner.user.pk))
    ]
    single = clients.auditor.get(f"{ACME}/entries/{items[0]['id']}").json()
    assert single == items[0]
    future = "2099-01-01T00:00:00Z"
    assert clients.auditor.get(f"{ACME}/entries?since={future}").json()["items"] == []
    assert clients.auditor.get(f"{ACME}/entries?action=a'b").status_code == 400
    (story,) = calls_of(cast, "start; refuse expired")
    refusals = clients.auditor.get(f"{ACME}/refusals").json()["items"]
    assert [item["id"] for item in refusals] == [str(story.made[-1].id)]


# --- members and functions ---


def test_owners_change_roles_and_scopes_but_not_their_own_role(
    cast: Cast, owner: ApiClient
) -> None:
    path = f"{ACME}/members/{cast.member.user.pk}"
    change = {"role": "auditor", "scopes": ["mcp:refund"]}
    response = owner.send("PUT", path, change, etag=owner.etag(path))
    assert response.status_code == 200, response.content
    assert {name: response.json()[name] for name in change} == change
    assert owner.send("PUT", path, change, etag=owner.etag(path)).content == response.content
    own = f"{ACME}/members/{cast.owner.user.pk}"
    refused = owner.send("PATCH", own, {"role": "member"}, etag=owner.etag(own))
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/role")
    assert owner.send("DELETE", own, etag=owner.etag(own)).status_code == 422
    assert owner.send("DELETE", path, etag=owner.etag(path)).status_code == 204
    assert not Membership.objects.filter(user=cast.member.user).exists()
    names = [item["username"] for item in owner.get(f"{ACME}/members").json()["items"]]
    assert names == ["auditor", "operator", "owner"]


def test_a_tenant_sees_the_functions_that_staff_granted_and_no_others(
    clients: ApiClients,
) -> None:
    path = f"{ACME}/functions/probe.echo"
    assert clients.owner.get(f"{ACME}/functions").json()["items"] == []
    assert clients.owner.get(path).status_code == 404
    assert clients.staff.get(path).json()["granted"] is False
    body = {"granted": True}
    response = clients.staff.send("PUT", path, body, etag=clients.staff.etag(path))
    assert response.json()["granted"] is True
    assert clients.owner.get(path).content == response.content
    assert clients.owner.send("PUT", path, {"granted": False}, etag="*").status_code == 403
    unknown = f"{ACME}/functions/probe.nothing"
    assert clients.staff.send("PUT", unknown, body, etag="*").status_code == 404


# --- the tenant as one file ---

FILE = "format: 1\ntools:\n  fine:\n    kind: http\n    description: Fine.\n    config:\n      request: {method: GET, url: 'https://api.example.com/'}\n"


def test_a_file_is_planned_applied_with_its_digest_and_read_again(clients: ApiClients) -> None:
    operator, path = clients.operator, f"{ACME}/file"
    plan = operator.send("POST", f"{path}/plan", {"content": FILE})
    assert plan.status_code == 200, plan.content
    assert plan.json()["changes"] == [
        {
            "section": "tools",
            "name": "fine",
            "verbs": ["created", "published"],
            "changed": [],
            "missing": [],
        }
    ]
    assert operator.get(f"{ACME}/tools").json()["items"] == []
    stale = {"content": FILE, "digest": "of another plan"}
    assert operator.send("POST", f"{path}/apply", stale).status_code == 412
    unseen = {"content": FILE, "digest": ""}
    assert operator.send("POST", f"{path}/apply", unseen).status_code == 422
    assert operator.get(f"{ACME}/tools").json()["items"] == []
    body = {"content": FILE, "digest": plan.json()["digest"]}
    applied = operator.send("POST", f"{path}/apply", body, Idempotency_Key="once")
    assert applied.json() == plan.json()
    again = operator.send("POST", f"{path}/apply", body, Idempotency_Key="once")
    assert again.headers["Idempotent-Replayed"] == "true"
    (tool,) = operator.get(f"{ACME}/tools").json()["items"]
    assert (tool["name"], tool["state"]) == ("fine", "published")
    content = operator.get(path).json()["content"]
    assert operator.send("POST", f"{path}/plan", {"content": content}).json()["changes"] == []


def test_the_problems_of_a_file_have_their_lines(clients: ApiClients) -> None:
    content = FILE.replace("https://api.example.com/", "ftp://x") + "tenant: {title: New}\n"
    response = clients.operator.send("POST", f"{ACME}/file/plan", {"content": content})
    assert response.status_code == 422
    details = [fault["detail"] for fault in response.json()["errors"]]
    assert details[0].startswith("Line 7: ")
    assert details[1] == "Line 8: Only owners may change the settings of the tenant."
    nonsense = clients.operator.send("POST", f"{ACME}/file/plan", {"content": "a: *b"})
    assert nonsense.json()["errors"][0]["detail"].startswith("Line 1: Anchors")
