"""Tasks, which are named by their calls, and invitations, whose links are shown once."""

from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from mcphost.audit.models import Entry
from mcphost.calls.states import QuestionState
from mcphost.identity.models import IdempotencyKey
from mcphost.tasks.models import Task
from mcphost.tasks.states import TaskState
from mcphost.tenants.models import Membership
from tests.api.client import ApiClient
from tests.api.conftest import ApiClients
from tests.audit.recorded_calls import Story, keep
from tests.cast import Cast
from tests.tasks.rows import a_question, a_task

pytestmark = pytest.mark.django_db

ACME = "/api/v1/tenants/acme"
TASKS, INVITATIONS = f"{ACME}/tasks", f"{ACME}/invitations"
REASON = {"reason": "The order was withdrawn."}
MIA = {"username": "mia", "role": "operator"}


@pytest.fixture
def tasks(cast: Cast) -> dict[str, Task]:
    """Tasks of acme that wait, work and have failed, the oldest first; and one of globex."""
    now = timezone.now()
    story = Story.of(cast.acme.id, "paint", at=now - timedelta(minutes=9)).become_task()
    keep(story)
    tasks = {
        "waiting": a_task(cast.acme.id, story.call.id, created_at=now - timedelta(minutes=5)),
        "working": a_task(cast.acme.id, tool="ship", created_at=now - timedelta(minutes=4)),
        "failed": a_task(cast.acme.id, state=TaskState.FAILED),
        "foreign": a_task(cast.globex.id),
    }
    a_question(tasks["waiting"], "colour")
    a_question(tasks["waiting"], "size", state=QuestionState.ANSWERED)
    return tasks


def states(client: ApiClient, path: str) -> list[str]:
    response = client.get(path)
    assert response.status_code == 200, response.content
    return [item["state"] for item in response.json()["items"]]


def test_tasks_are_listed_filtered_and_read_by_their_calls(
    clients: ApiClients, tasks: dict[str, Task]
) -> None:
    assert states(clients.auditor, TASKS) == ["failed", "working", "waiting"]
    assert states(clients.auditor, f"{TASKS}?state=waiting") == ["waiting"]
    assert states(clients.auditor, f"{TASKS}?state=failed_recently") == ["failed"]
    assert states(clients.auditor, f"{TASKS}?target=ship") == ["working"]
    first = clients.auditor.get(f"{TASKS}?limit=2").json()
    assert states(clients.auditor, f"{TASKS}?limit=2&cursor={first['next']}") == ["waiting"]
    waiting = clients.auditor.get(f"{TASKS}/{tasks['waiting'].call}").json()
    asked = [(item["key"], item["state"]) for item in waiting["input_requests"]]
    assert asked == [("colour", "open"), ("size", "answered")]
    assert (waiting["caller"], waiting["process"]) == ("Ada's laptop", None)
    assert str(tasks["waiting"].id) not in clients.auditor.get(TASKS).content.decode()
    for query in ("state=done", "tool=ship", f"state=failed&cursor={first['next']}"):
        assert clients.auditor.get(f"{TASKS}?{query}").status_code == 400


def test_the_tasks_of_another_tenant_do_not_exist(
    clients: ApiClients, tasks: dict[str, Task]
) -> None:
    foreign = f"{TASKS}/{tasks['foreign'].call}"
    assert clients.owner.get(foreign).status_code == 404
    for act in ("cancel", "retry"):
        assert clients.owner.send("POST", f"{foreign}/{act}", REASON, etag="*").status_code in (
            404,
            422,
        )
    assert clients.owner.send("POST", f"{foreign}/retry", etag="*").status_code == 404
    assert clients.stranger.get(f"{TASKS}/{tasks['waiting'].call}").status_code == 404
    tasks["foreign"].refresh_from_db()
    assert tasks["foreign"].state == TaskState.WORKING


def test_a_task_is_retried_and_cancelled_on_the_record_and_only_while_it_works(
    cast: Cast, clients: ApiClients, tasks: dict[str, Task]
) -> None:
    path = f"{TASKS}/{tasks['working'].call}"
    assert clients.auditor.send("POST", f"{path}/cancel", REASON).status_code == 403
    assert clients.operator.send("POST", f"{path}/retry").status_code == 428
    retried = clients.operator.send("POST", f"{path}/retry", etag=clients.operator.etag(path))
    assert (retried.status_code, retried.json()["due_at"] is not None) == (200, True)
    waiting = f"{TASKS}/{tasks['waiting'].call}/retry"
    assert clients.operator.send("POST", waiting, etag="*").status_code == 409
    assert clients.operator.send("POST", f"{path}/cancel", {"reason": " "}).status_code == 422
    cancelled = clients.operator.send("POST", f"{path}/cancel", REASON)
    assert (cancelled.status_code, cancelled.json()["state"]) == (200, "cancelled")
    assert clients.operator.send("POST", f"{path}/cancel", REASON).status_code == 409
    entries = Entry.objects.filter(action__startswith="task.").order_by("id")
    acts = [("task.retried", ""), ("task.cancelled", REASON["reason"])]
    assert [(entry.action, entry.reason) for entry in entries if entry.call] == acts
    logged = clients.auditor.get("/api/v1/tenants/acme/entries?action=task.").json()["items"]
    assert [(row["action"], row["facts"].get("reason", "")) for row in logged] == acts[::-1]
    assert {entry.actor_id for entry in entries} == {str(cast.operator.user.pk)}


def test_the_link_of_an_invitation_is_shown_once_and_works(cast: Cast, clients: ApiClients) -> None:
    body = {"username": "member", "role": "auditor", "days": 2}
    Membership.objects.filter(user=cast.member.user).delete()
    path, response = clients.owner.made(INVITATIONS, body, Idempotency_Key="invite-1")
    made = response.json()
    assert (made["state"], made["invited_by"], made["sets_up"]) == ("open", "owner", False)
    replay = clients.owner.send("POST", INVITATIONS, body, Idempotency_Key="invite-1")
    assert (replay.status_code, replay.headers["Idempotent-Replayed"]) == (201, "true")
    assert replay.json() == {**made, "link": None}
    assert replay.headers["ETag"] == response.headers["ETag"] == clients.owner.etag(path)
    shown = {name: value for name, value in made.items() if name != "link"}
    assert clients.owner.get(path).json() == shown
    assert clients.owner.get(INVITATIONS).json()["items"] == [shown]
    link = urlsplit(made["link"]).path
    secret = link.rstrip("/").rpartition("/")[2]
    assert not any(secret in row.body for row in IdempotencyKey.objects.all())
    entry: Any = Entry.objects.get(action="member.invited")
    assert entry.token_id
    browser = Client()
    browser.force_login(cast.member.user)
    browser.post(link, {"_accept": "1"})
    assert Membership.objects.get(user=cast.member.user).role == "auditor"
    assert clients.owner.get(path).json()["state"] == "accepted"


def test_a_link_has_the_public_address_and_not_the_host_of_its_request(
    clients: ApiClients, settings: Settings
) -> None:
    settings.MCPHOST_PUBLIC_URL = "https://mcp.example.com"
    settings.ALLOWED_HOSTS = [".example.com"]
    _, response = clients.owner.made(INVITATIONS, MIA, Host="evil.example.com:4444")
    assert response.json()["link"].startswith("https://mcp.example.com/admin/")


def test_an_invitation_is_withdrawn_once_and_with_its_etag(clients: ApiClients) -> None:
    path, response = clients.owner.made(INVITATIONS, MIA)
    act = f"{path}/withdraw"
    assert clients.owner.send("POST", act).status_code == 428
    assert clients.owner.send("POST", act, etag='"old"').status_code == 412
    done = clients.owner.send("POST", act, etag=response.headers["ETag"])
    assert (done.status_code, done.json()["state"]) == (200, "withdrawn")
    again = clients.owner.send("POST", act, etag="*")
    assert (again.status_code, again.json()["errors"][0]["pointer"]) == (409, "/state")


def test_invitations_have_pages_and_a_new_one_takes_the_place_of_the_old(
    clients: ApiClients,
) -> None:
    for name in ("mia", "noa", "mia"):
        clients.owner.made(INVITATIONS, {**MIA, "username": name})
    first = clients.owner.get(f"{INVITATIONS}?limit=2").json()
    rest = clients.owner.get(f"{INVITATIONS}?limit=2&cursor={first['next']}").json()
    listed = [(item["username"], item["state"]) for item in first["items"] + rest["items"]]
    assert listed == [("mia", "open"), ("noa", "open"), ("mia", "withdrawn")]
    assert rest["next"] is None


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"role": "staff"}, "/role"),
        ({"days": 31}, "/days"),
        ({"days": "7"}, "/days"),
        ({"username": "owner"}, "/username"),
        ({"username": " mia "}, "/username"),
        ({"username": "m\u0000ia"}, "/username"),
        ({"email": "mia@x.example"}, "/email"),
    ],
)
def test_a_wrong_field_of_an_invitation_is_refused_by_name(
    clients: ApiClients, change: dict[str, Any], pointer: str
) -> None:
    response = clients.owner.send("POST", INVITATIONS, {**MIA, **change})
    assert response.status_code == 422
    assert [fault["pointer"] for fault in response.json()["errors"]] == [pointer]
    assert clients.owner.get(INVITATIONS).json()["items"] == []


def test_only_owners_and_staff_see_and_make_invitations(clients: ApiClients) -> None:
    path, _ = clients.owner.made(INVITATIONS, MIA)
    assert clients.operator.get(INVITATIONS).status_code == 403
    assert clients.operator.send("POST", INVITATIONS, MIA).status_code == 403
    assert clients.stranger.get(path).status_code == 404
    other = path.replace("acme", "globex")
    assert clients.stranger.get(other).status_code == 404
    assert clients.stranger.send("POST", f"{other}/withdraw", etag="*").status_code == 404
    assert clients.owner.get(path).json()["state"] == "open"
    assert clients.staff.send("POST", INVITATIONS, {**MIA, "username": "noa"}).status_code == 201
