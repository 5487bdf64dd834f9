"""Input requests: lists with the filters of the console, single ones, their payloads, and cancelling."""

from datetime import timedelta
from typing import Any, get_args

import pytest
from django.utils import timezone

from mcphost.api.resources.input_requests import InputRequestQuery
from mcphost.audit.models import Entry, Payload
from mcphost.audit.records import ANSWER_RECEIVED, QUESTION_ASKED
from mcphost.catalogue import services
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.console.records.stages import QUESTION_STATES
from mcphost.runtime.call import Client as MCPClient
from tests.api.client import ApiClient
from tests.api.conftest import ApiClients
from tests.api.samples import http_config
from tests.audit.recorded_calls import Story, follow, keep
from tests.cast import ACTOR, Cast

pytestmark = pytest.mark.django_db

LIST, ALL = "/api/v1/tenants/acme/input_requests", "/api/v1/input_requests"
DONE = "start; ask gone; back; start; answer gone decline; end"


@pytest.fixture
def stories(cast: Cast, clients: ApiClients) -> dict[str, Story]:
    """An ended call and an overdue one of acme, and a call of globex."""
    fields = PrimitiveFields(
        "slow", http_config("orders"), kind="http", description="Slow.", target_seconds=30
    )
    services.create(cast.acme.id, fields, ACTOR)
    at = timezone.now() - timedelta(minutes=9)
    cursor = MCPClient("cursor", "3")
    stories = {
        "gone": Story.of(cast.acme.id, "refund", at=at, client=cursor).play(DONE),
        "late": Story.of(cast.acme.id, "slow", at=at + timedelta(minutes=2)).play(
            "start; ask late"
        ),
        "foreign": Story.of(cast.globex.id, "slow", at=at + timedelta(minutes=4)).play(
            "start; ask foreign"
        ),
    }
    keep(*stories.values())
    follow()
    return stories


def asked(story: Story) -> str:
    return next(str(row.id) for row in story.made if row.action == QUESTION_ASKED)


def keys(client: ApiClient, path: str) -> list[str]:
    response = client.get(path)
    assert response.status_code == 200, response.content
    return [item["key"] for item in response.json()["items"]]


def test_the_states_are_those_of_the_console() -> None:
    choices, _ = get_args(InputRequestQuery.model_fields["state"].annotation)
    assert set(get_args(choices)) == set(QUESTION_STATES)


def test_each_filter_narrows_the_list(clients: ApiClients, stories: dict[str, Story]) -> None:
    future = "2099-01-01T00:00:00Z"
    expected = {
        "": ["late", "gone"],
        "state=open": ["late"],
        "state=overdue": ["late"],
        "state=expiring": [],
        "state=declined": ["gone"],
        "state=answered": [],
        "state=responded": ["gone"],
        "target=refund": ["gone"],
        "client=curs": ["gone"],
        'client="curs"': [],
        "principal=Ada": ["late", "gone"],
        "principal=Bob": [],
        "counted=1h": ["late", "gone"],
        f"since={future}": [],
        f"until={future}&state=open": ["late"],
    }
    listed = {query: keys(clients.operator, f"{LIST}?{query}") for query in expected}
    assert listed == expected


def test_an_item_is_the_object_itself_with_what_became_of_it(
    clients: ApiClients, stories: dict[str, Story]
) -> None:
    late, gone = clients.auditor.get(LIST).json()["items"]
    assert clients.auditor.get(f"{LIST}/{late['id']}").json() == late
    assert (late["state"], late["overdue"], late["target_seconds"]) == ("open", True, 30)
    assert (gone["state"], gone["due_at"], gone["call_state"]) == ("decline", None, "complete")
    assert (gone["tenant"], gone["client_name"], gone["call"]) == (
        "acme",
        "cursor",
        str(stories["gone"].call.id),
    )
    (response,) = clients.auditor.get(f"{LIST}/{gone['id']}/responses").json()["responses"]
    assert (response["outcome"], response["ran"], response["round"]) == ("decline", "complete", 2)
    assert clients.auditor.get(f"{LIST}/{late['id']}/responses").json() == {"responses": []}


def test_pages_follow_one_another_and_a_cursor_belongs_to_one_list(
    clients: ApiClients, stories: dict[str, Story]
) -> None:
    page = clients.owner.get(f"{LIST}?limit=1").json()
    assert [item["key"] for item in page["items"]] == ["late"]
    assert keys(clients.owner, f"{LIST}?limit=1&cursor={page['next']}") == ["gone"]
    for path in (f"{LIST}?state=open&", "/api/v1/tenants/acme/calls?"):
        refused = clients.owner.get(f"{path}cursor={page['next']}")
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (400, "cursor")
    other = LIST.replace("acme", "globex")
    assert clients.stranger.get(f"{other}?cursor={page['next']}").status_code == 400
    assert clients.staff.get(f"{ALL}?cursor={page['next']}").status_code == 400


@pytest.mark.parametrize(
    "query", ["state=nonsense", "counted=2h", "tenant=globex", "since=now", "colour=red", "limit=0"]
)
def test_wrong_and_unknown_filters_are_refused_by_name(clients: ApiClients, query: str) -> None:
    response = clients.owner.get(f"{LIST}?{query}")
    assert (response.status_code, response.json()["errors"][0]["pointer"]) == (
        400,
        query.partition("=")[0],
    )


@pytest.mark.parametrize("end", ["", "/export"])
@pytest.mark.parametrize("time", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_any_time_narrows_the_list(clients: ApiClients, time: str, end: str) -> None:
    for name in ("since", "until"):
        response = clients.owner.get(f"{LIST}{end}?{name}={time}")
        assert response.status_code in (200, 400), response.content
        assert response.status_code == 200 or response.json()["errors"][0]["pointer"] == name


def test_staff_list_those_of_all_tenants_and_nobody_else_does(
    clients: ApiClients, stories: dict[str, Story]
) -> None:
    assert keys(clients.staff, ALL) == ["foreign", "late", "gone"]
    assert keys(clients.staff, f"{ALL}?tenant=globex") == ["foreign"]
    assert keys(clients.staff, f"{ALL}?tenant=nope") == []
    assert keys(clients.staff, f"{ALL}?state=overdue") == ["late"]
    for client in (clients.owner, clients.auditor, clients.stranger):
        assert client.get(ALL).status_code == 403


def test_no_filter_id_or_cursor_reaches_another_tenant(
    clients: ApiClients, stories: dict[str, Story]
) -> None:
    foreign, own = asked(stories["foreign"]), asked(stories["late"])
    for query in ("target=slow", "state=open", "state=overdue", "principal=Ada", "counted=1h"):
        assert "foreign" not in keys(clients.auditor, f"{LIST}?{query}"), query
    for end in ("", "/responses", "/payloads"):
        assert clients.auditor.get(f"{LIST}/{foreign}{end}").status_code == 404
        assert clients.stranger.get(f"{LIST}/{own}{end}").status_code == 404
    body = {"reason": "Not mine."}
    assert clients.owner.send("POST", f"{LIST}/{foreign}/cancel", body).status_code == 404
    assert not Entry.objects.filter(action="call.cancelled").exists()


def test_auditors_read_payloads_on_the_record_and_no_other_role_does(
    cast: Cast, clients: ApiClients, stories: dict[str, Story]
) -> None:
    entries = [
        row.id for row in stories["gone"].made if row.action in (QUESTION_ASKED, ANSWER_RECEIVED)
    ]
    for entry in entries:
        Payload.objects.create(entry=entry, tenant=cast.acme.id, key_id="lost", ciphertext=b"x")
    path = f"{LIST}/{entries[0]}/payloads"
    for client in (clients.owner, clients.operator, clients.staff):
        assert client.get(path).status_code == 403
    assert not Entry.objects.filter(action="payload.viewed").exists()
    payloads = clients.auditor.get(path).json()["payloads"]
    assert [payload["entry"] for payload in payloads] == [str(entry) for entry in entries]
    viewed: Any = Entry.objects.get(action="payload.viewed")
    assert viewed.target == str(stories["gone"].call.id)
    assert viewed.facts["payloads"] == [str(entry) for entry in entries]
    assert viewed.actor_id == str(cast.auditor.user.pk)


def test_the_call_of_an_open_one_is_cancelled_with_a_reason_once(
    clients: ApiClients, stories: dict[str, Story]
) -> None:
    path = f"{LIST}/{asked(stories['late'])}/cancel"
    body = {"reason": "The order was withdrawn."}
    assert clients.auditor.send("POST", path, body).status_code == 403
    for reason in ("", "   ", "x" * 301):
        assert clients.operator.send("POST", path, {"reason": reason}).status_code == 422
    response = clients.operator.send("POST", path, body, Idempotency_Key="once")
    assert (response.status_code, response.json()["state"]) == (200, "stopped"), response.content
    replay = clients.operator.send("POST", path, body, Idempotency_Key="once")
    assert (replay.headers["Idempotent-Replayed"], replay.content) == ("true", response.content)
    assert Entry.objects.get(action="call.cancelled", call__isnull=False).reason == body["reason"]
    assert clients.operator.send("POST", path, body).status_code == 409
    gone = f"{LIST}/{asked(stories['gone'])}/cancel"
    assert clients.operator.send("POST", gone, body).status_code == 409
