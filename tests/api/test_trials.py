"""Tools are tried through the API: run, asked by them, and continued with responses."""

import asyncio
from collections.abc import AsyncIterator
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import connections
from django.utils import timezone

from mcphost.api.resources.trials import SHOWN_ONCE
from mcphost.audit.models import Entry
from mcphost.audit.records import ROUND_FINISHED
from mcphost.catalogue import services
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.identity.idempotency import CLAIMED_FOR
from mcphost.identity.models import IdempotencyKey
from mcphost.routing import process
from mcphost.serving.execution import trials
from mcphost.serving.execution.trials import TrialRequest, TrialResult
from mcphost.serving.user_slots import TRIALS, UserSlots
from tests.api.client import ApiClient
from tests.api.conftest import ApiClients
from tests.api.test_document import validator
from tests.cast import ACTOR, Cast
from tests.console.primitives.test_trials import SCRIPT

pytestmark = pytest.mark.django_db(transaction=True)

ACCEPTED = {"sure": {"action": "accept", "content": {"sure": True}}}


@pytest.fixture
def published(cast: Cast, clients: ApiClients) -> str:
    """The address of a published tool."""
    fields = PrimitiveFields("order", {"code": SCRIPT.strip()}, kind="script", description="Order.")
    row = services.create(cast.acme.id, fields, ACTOR)
    services.publish(row.id, ACTOR)
    return f"/api/v1/tenants/acme/tools/{row.id}"


@pytest.fixture
async def tool(published: str) -> AsyncIterator[str]:
    """The same, in a process that records."""
    process.start()
    yield published
    await process.stop()


def tried(client: ApiClient, tool: str, **body: Any) -> Any:
    """Begin a trial, or continue it; return what its round gave."""
    path = f"{tool}/try/continue" if "state" in body else f"{tool}/try"
    response = client.send("POST", path, body)
    assert response.status_code == 200, response.content
    members = response.json()
    validator("#/components/schemas/Trial").validate(members)
    return members


def test_a_trial_asks_for_input_goes_on_with_it_and_is_recorded(
    clients: ApiClients, tool: str
) -> None:
    asking = tried(clients.operator, tool, arguments={"item": "tea"})
    assert (asking["outcome"], asking["round"], asking["result"]) == ("input_required", 1, None)
    assert asking["input_requests"]["sure"]["params"]["message"] == "Really order tea?"
    assert [message["method"] for message in asking["messages"]] == [
        "notifications/progress",
        "notifications/message",
    ]
    done = tried(clients.operator, tool, state=asking["state"], responses=ACCEPTED)
    assert (done["outcome"], done["round"], done["state"]) == ("complete", 2, None)
    assert done["result"]["content"][0]["text"] == "accept tea"
    assert done["call_id"] == asking["call_id"]
    entries = Entry.objects.filter(call=done["call_id"], action=ROUND_FINISHED)
    assert [entry.target for entry in entries] == ["order", "order"]


def test_a_version_is_tried_as_it_was_published(clients: ApiClients, tool: str) -> None:
    version = clients.owner.get(f"{tool}/versions").json()["items"][0]["id"]
    code = 'async def order(item: str) -> str:\n    """Order."""\n    return "draft " + item'
    config = {"config": {"code": code}}
    assert clients.owner.send("PATCH", tool, config, etag="*").status_code == 200
    assert tried(clients.owner, tool, arguments={"item": "tea"})["outcome"] == "complete"
    earlier = tried(clients.owner, tool, arguments={"item": "tea"}, version_id=version)
    assert earlier["outcome"] == "input_required"
    unknown = {"arguments": {}, "version_id": str(uuid4())}
    assert clients.owner.send("POST", f"{tool}/try", unknown).status_code == 404


def test_a_refused_request_and_wrong_arguments_are_answered_as_to_a_client(
    clients: ApiClients, tool: str
) -> None:
    asking = tried(clients.owner, tool, arguments={"item": "tea"})
    refused = tried(clients.owner, tool, state=asking["state"], responses={"sure": None})
    assert refused["result"]["isError"]
    wrong = tried(clients.owner, tool, arguments={"item": 5})
    assert wrong["outcome"] in ("complete", "refused")
    assert wrong["error"] or wrong["result"]["isError"]


def test_a_state_belongs_to_its_user_and_its_definition(clients: ApiClients, tool: str) -> None:
    asking = tried(clients.operator, tool, arguments={"item": "tea"})
    body = {"state": asking["state"], "responses": ACCEPTED}
    path = f"{tool}/try/continue"
    for client, state in ((clients.owner, body["state"]), (clients.operator, "another")):
        response = client.send("POST", path, {**body, "state": state})
        assert response.status_code == 422
        assert response.json()["errors"][0]["pointer"] == "/state"
    clients.owner.send("PATCH", tool, {"description": "Another."}, etag="*")
    assert clients.operator.send("POST", path, body).status_code == 409
    call = clients.owner.get(f"/api/v1/tenants/acme/calls/{asking['call_id']}").json()
    assert call["state"] == "cancelled"


@pytest.mark.parametrize("change", ["disable", "archive", "roll-back", "file", "command", "delete"])
def test_a_trial_ends_when_its_tool_is_changed_or_removed(
    clients: ApiClients, tool: str, change: str, tmp_path: Path
) -> None:
    owner = clients.owner
    version = owner.get(f"{tool}/versions").json()["items"][0]["id"]
    if change == "delete":  # only what is archived can be deleted
        assert owner.send("POST", f"{tool}/archive", {}, etag="*").status_code == 200
    asking = tried(clients.operator, tool, arguments={"item": "tea"})
    call = f"/api/v1/tenants/acme/calls/{asking['call_id']}"
    assert owner.get(call).json()["state"] != "cancelled"
    if change == "roll-back":
        description = {"description": "Another."}
        assert owner.send("PATCH", tool, description, etag="*").status_code == 200
        assert owner.send("POST", f"{tool}/publish", {}, etag="*").status_code == 200
        body = {"version_id": version}
        assert owner.send("POST", f"{tool}/roll-back", body, etag="*").status_code == 200
    elif change == "delete":
        assert owner.send("DELETE", tool, etag="*").status_code == 204
    elif change == "command":
        path = tmp_path / "acme.yaml"
        path.write_text("format: 1\nprune: true\n")
        call_command("tenant", "apply", "acme", str(path), stdout=StringIO())
    elif change == "file":
        file = "/api/v1/tenants/acme/file"
        content = owner.get(file).json()["content"].replace("Order.", "Another.")
        digest = owner.send("POST", f"{file}/plan", {"content": content}).json()["digest"]
        body = {"content": content, "digest": digest}
        assert owner.send("POST", f"{file}/apply", body).status_code == 200
    else:
        assert owner.send("POST", f"{tool}/{change}", {}, etag="*").status_code == 200
    assert owner.get(call).json()["state"] == "cancelled"


def test_a_trial_whose_round_ran_during_a_roll_back_does_not_go_on(
    clients: ApiClients, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, resume = clients.owner, trials._resumed
    version = owner.get(f"{tool}/versions").json()["items"][0]["id"]
    owner.send("PATCH", tool, {"description": "Another."}, etag="*")
    assert owner.send("POST", f"{tool}/publish", {}, etag="*").status_code == 200

    def roll_back() -> None:
        body = {"version_id": version}
        assert owner.send("POST", f"{tool}/roll-back", body, etag="*").status_code == 200
        connections.close_all()

    async def roll_back_first(*turn: Any) -> Any:
        await asyncio.to_thread(roll_back)
        return await resume(*turn)

    with monkeypatch.context() as patched:
        patched.setattr(trials, "_resumed", roll_back_first)
        asking = tried(clients.operator, tool, arguments={"item": "tea"})
    body = {"state": asking["state"], "responses": ACCEPTED}
    response = clients.operator.send("POST", f"{tool}/try/continue", body)
    assert response.status_code == 409
    assert response.json()["detail"].startswith("Another version of the tool is served.")
    call = owner.get(f"/api/v1/tenants/acme/calls/{asking['call_id']}").json()
    assert call["state"] == "cancelled"


def test_a_trial_waits_for_another_one_of_the_user(
    cast: Cast, clients: ApiClients, tool: str
) -> None:
    with TRIALS.of(cast.operator.user.pk, cast.acme.id):
        response = clients.operator.send("POST", f"{tool}/try", {"arguments": {"item": "tea"}})
    assert (response.status_code, response.headers["Retry-After"]) == (429, "2")


def test_a_repeated_trial_runs_once_and_what_it_was_about_is_not_stored(
    clients: ApiClients, tool: str
) -> None:
    def send() -> Any:
        body = {"arguments": {"item": "canary"}}
        return clients.owner.send("POST", f"{tool}/try", body, Idempotency_Key="one")

    first, second = send(), send()
    members = first.json()
    assert "canary" in str(members["input_requests"])
    assert second.headers["Idempotent-Replayed"] == "true"
    assert second.json() == {**members, **dict.fromkeys(SHOWN_ONCE)}
    assert second.headers["ETag"] == first.headers["ETag"]
    validator("#/components/schemas/Trial").validate(second.json())
    assert not any("canary" in row.body for row in IdempotencyKey.objects.all())


def test_a_trial_that_is_repeated_at_another_process_while_it_runs_is_not_run_again(
    clients: ApiClients, tool: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, rounds, repetitions = trials.run, [], []

    def send(arguments: dict[str, Any]) -> Any:
        return clients.owner.send(
            "POST", f"{tool}/try", {"arguments": arguments}, Idempotency_Key="one"
        )

    def send_to_another_process(arguments: dict[str, Any]) -> Any:
        try:
            return send(arguments)
        finally:
            connections.close_all()

    async def run_and_repeat(trial: TrialRequest) -> TrialResult:
        rounds.append(trial)
        if len(rounds) == 1:
            monkeypatch.setattr("mcphost.api.resources.trials.TRIALS", UserSlots(2))
            for item in ("tea", "coffee"):
                arguments = {"item": item}
                repetitions.append(await asyncio.to_thread(send_to_another_process, arguments))
        return await run(trial)

    monkeypatch.setattr(trials, "run", run_and_repeat)
    first = send({"item": "tea"})
    assert first.status_code == 200, first.content
    assert [response.status_code for response in repetitions] == [409, 409]
    assert repetitions[0].headers["Retry-After"] == "2"
    assert len(rounds) == 1
    assert send({"item": "tea"}).headers["Idempotent-Replayed"] == "true"


def test_a_key_is_free_again_after_a_trial_that_was_refused_and_after_one_of_a_dead_process(
    cast: Cast, clients: ApiClients, tool: str
) -> None:
    def send() -> Any:
        body = {"arguments": {"item": "tea"}}
        return clients.owner.send("POST", f"{tool}/try", body, Idempotency_Key="one")

    with TRIALS.of(cast.owner.user.pk, cast.acme.id):
        assert send().status_code == 429
    assert not IdempotencyKey.objects.exists()
    caller = cast.owner.api_token.split("_")[1]
    began = timezone.now() - CLAIMED_FOR
    IdempotencyKey.objects.create(caller=caller, key="one", status=0, created_at=began)
    assert send().json()["outcome"] == "input_required"
