"""Tests of saved calls: what a trial did is saved with an expectation, and runs again after an edit."""

import re
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from mcphost.audit.models import Entry
from mcphost.catalogue import saved_calls as stored
from mcphost.catalogue import services
from mcphost.catalogue.errors import UnknownError
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.models import SavedCall
from mcphost.catalogue.saved_calls import Expectation, SavedRequest
from mcphost.console.primitives import saved_calls
from mcphost.tenants.access import lock_open_tenant
from tests.cast import ACTOR
from tests.console.primitives.test_trials import SCRIPT, acme, answer, begin, sent, text
from tests.console.tenant_data import Things
from tests.plugins.canaries import CANARY

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("acme")]
__all__ = ["acme"]

STRUCTURED = '''
def order(item: str) -> dict:
    """Order something."""
    answer = elicit("size", "Which size?", {"size": str})
    return {"item": item, "size": answer["size"]}
'''
ACCEPTED = {"answer-size-action": "accept", "answer-size-value-size": "large"}


@pytest.fixture
def tool(acme: Things) -> UUID:
    return save_tool(acme, STRUCTURED)


def save_tool(acme: Things, code: str) -> UUID:
    fields = PrimitiveFields("order", {"code": code.strip()}, kind="script", description="Order.")
    return services.create(acme.tenant, fields, ACTOR).id


def deletion(client: Client, tool: UUID) -> str:
    return text(client.get(f"/admin/t/acme/tools/{tool}/delete/"))


def edit(tool: UUID, code: str) -> None:
    fields = PrimitiveFields("order", {"code": code.strip()}, kind="script", description="Order.")
    services.update(tool, fields, ACTOR)


def path_of(tool: UUID) -> str:
    return f"/admin/t/acme/tools/{tool}/try/"


def save(client: Client, tool: UUID, name: str = "large tea", item: str = "tea", **fields: Any):
    asked = begin(client, STRUCTURED, path_of(tool), item=item)
    done = answer(client, asked, path_of(tool), **ACCEPTED)
    filled = {"saved-name": name, "saved-outcome": "complete", **fields}
    return client.post(path_of(tool), {**sent(done), "_save_call": "1", **filled})


def rerun(client: Client, tool: UUID, call: str = "all") -> str:
    page = text(client.post(f"/admin/t/acme/tools/{tool}/saved-calls/", {"call": call}))
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))


def test_a_trial_is_saved_and_passes_until_an_edit_changes_what_it_gives(
    operator: Client, tool: UUID
) -> None:
    page = save(operator, tool, **{"saved-contains": "large", "saved-same": "on"})
    assert "is a saved call of this tool now" in text(page)
    listed = text(operator.get(f"/admin/t/acme/tools/{tool}/"))
    assert "the structured content is the same" in listed
    assert " passed " in rerun(operator, tool)
    edit(tool, STRUCTURED.replace('"size": answer["size"]', '"size": answer["size"].upper()'))
    failed = rerun(operator, tool)
    assert " failed " in failed
    assert "The result does not contain “large”." in failed
    edit(tool, STRUCTURED.replace('"item": item,', '"item": item + "!",'))
    failed = rerun(operator, tool)
    assert "The structured content is another one." in failed
    assert '- "item": "tea"' in failed
    assert '+ "item": "tea!"' in failed
    edit(tool, STRUCTURED.replace('"size", "Which', '"width", "Which'))
    assert "It asks other questions than when it was saved: width." in rerun(operator, tool)
    edit(tool, STRUCTURED.replace("return {", "raise ValueError\n    return {"))
    assert "It ends with an error of the tool" in rerun(operator, tool)
    runs = Entry.objects.filter(delivery="playground", target="order")
    assert runs.values("call").distinct().count() == 5, "each run is a call of its own"


def test_the_client_and_refusals_are_part_of_a_saved_call(operator: Client, acme: Things) -> None:
    tool = save_tool(acme, SCRIPT)
    asked = begin(operator, SCRIPT, path_of(tool), item="tea")
    done = answer(operator, asked, path_of(tool), **{"answer-sure-action": "decline"})
    filled = {"saved-name": "declined", "saved-outcome": "complete"}
    operator.post(path_of(tool), {**sent(done), "_save_call": "1", **filled})
    page = operator.post(path_of(tool), {"kind": "script", "code": SCRIPT.strip(), "name": "order"})
    run = {**sent(page), "_run": "1", "arguments-value-item": "tea", "client-preset": "nothing"}
    refused = operator.post(path_of(tool), run)
    filled = {"saved-name": "no forms", "saved-outcome": "refused", "saved-contains": "elicitation"}
    operator.post(path_of(tool), {**sent(refused), "_save_call": "1", **filled})
    page_text = rerun(operator, tool)
    assert "2 of 2 passed" in page_text
    assert "Expected It is refused" in page_text


def test_what_is_saved_is_encrypted_bound_to_its_tool_and_limited(
    operator: Client, tool: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(operator, tool, item=CANARY)
    row = SavedCall.objects.get(primitive=tool)
    assert CANARY.encode() not in bytes(row.content)
    saved = stored.saved_calls(tool)[0]
    assert saved.request is not None
    assert saved.request.arguments == {"item": CANARY}
    save(operator, tool, item="milk")
    assert SavedCall.objects.filter(primitive=tool).count() == 1, "the name is saved again"
    monkeypatch.setattr(stored, "MAX_PER_TOOL", 1)
    assert "has 1 saved calls already" in text(save(operator, tool, "another"))
    monkeypatch.setattr(stored, "MAX_BYTES", 10)
    assert "a saved one may have 10" in text(save(operator, tool))
    assert "This field is required" in text(save(operator, tool, ""))
    actions = Entry.objects.filter(action="saved_call.saved", target="order")
    assert actions.count() == 2
    assert all(CANARY not in str(entry.facts) for entry in actions)


def test_a_call_is_not_saved_for_a_tool_that_is_deleted_meanwhile(
    operator: Client, tool: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lock_late(*arguments: Any) -> Any:
        services.delete(tool, ACTOR)
        return lock_open_tenant(*arguments)

    monkeypatch.setattr(stored, "lock_open_tenant", lock_late)
    with pytest.raises(UnknownError):
        stored.save_call(tool, "tea", SavedRequest({}, {}), Expectation("complete"), ACTOR)


def test_saved_calls_are_deleted_and_go_with_their_tool(operator: Client, tool: UUID) -> None:
    save(operator, tool)
    save(operator, tool, "second")
    assert (
        "<code>order</code>, all its versions and its 2 saved calls will be deleted."
        in deletion(operator, tool)
    )
    first = stored.saved_calls(tool)[0].id
    delete = f"/admin/t/acme/tools/{tool}/saved-calls/{first}/delete/"
    assert "arguments and answers" in operator.get(delete).content.decode()
    assert stored.saved_calls(tool)[0].id == first
    assert operator.post(delete).status_code == 302
    assert operator.get(delete).status_code == operator.post(delete).status_code == 404
    assert [row.name for row in stored.saved_calls(tool)] == ["second"]
    assert Entry.objects.filter(action="saved_call.deleted", target="order").count() == 1
    assert "<code>order</code>, all its versions and its saved call will be deleted." in deletion(
        operator, tool
    )
    stored.delete_call(tool, stored.saved_calls(tool)[0].id, ACTOR)
    assert "<code>order</code> and all its versions will be deleted." in deletion(operator, tool)
    save(operator, tool)
    services.delete(tool, ACTOR)
    assert not SavedCall.objects.filter(primitive=tool).exists()


def test_calls_are_run_for_a_limited_time_and_by_those_who_may_edit_tools(
    operator: Client, auditor: Client, tool: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(operator, tool)
    run = f"/admin/t/acme/tools/{tool}/saved-calls/"
    assert auditor.post(run, {"call": "all"}).status_code == 403
    assert "Saved calls" not in text(auditor.get(f"/admin/t/acme/tools/{tool}/"))
    assert operator.get(run).status_code == 405
    monkeypatch.setattr(saved_calls, "MAX_SECONDS", -1.0)
    assert "Not all were run" in rerun(operator, tool)


def test_a_saved_call_says_when_it_ran_last_and_how_that_ended(
    operator: Client, tool: UUID
) -> None:
    save(operator, tool, **{"saved-contains": "large"})
    assert "Expected It completes, and the result contains “large”." in shown(operator, tool)
    assert "Last run never" in shown(operator, tool)
    assert "Last run just now , in " in rerun(operator, tool)
    listed = shown(operator, tool)
    assert " passed " in listed
    assert "Last run just now . View call" in listed
    edit(tool, STRUCTURED.replace('"size": answer["size"]', '"size": answer["size"].upper()'))
    failed = rerun(operator, tool)
    assert 'Its result {"item":"tea"' in failed
    assert " failed " in shown(operator, tool)
    save(operator, tool, **{"saved-contains": "LARGE"})
    assert "Last run never" in shown(operator, tool)


def shown(client: Client, tool: UUID) -> str:
    """Return the texts of the tool's page."""
    page = text(client.get(f"/admin/t/acme/tools/{tool}/"))
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
