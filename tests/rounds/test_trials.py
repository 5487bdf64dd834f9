"""Trials: a tool runs in the console as a client's call does, for operators only."""

from dataclasses import replace
from textwrap import dedent
from typing import Any

import orjson
import pytest
from django.core.exceptions import PermissionDenied

from mcphost.audit.models import Entry
from mcphost.audit.records import ANSWER_RECEIVED, ROUND_FINISHED, STATE_REFUSED
from mcphost.catalogue.errors import InvalidPrimitiveError
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.models import Primitive
from mcphost.routing import process
from mcphost.serving.database import in_database
from mcphost.serving.execution import trials
from mcphost.serving.execution.played_client import OPAQUE
from mcphost.serving.execution.trials import TrialRequest, TrialResult
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.services import close_tenant, update_tenant
from tests.cast import ACTOR, Cast
from tests.rounds.client_steps import accept, calling, frozen, state_of

pytestmark = pytest.mark.django_db(transaction=True)

SCRIPT = '''
async def order(item: str) -> str:
    """Order something."""
    progress(1, 2, "looking")
    log({"looked": item}, level="warning")
    answer = await ask("sure", "Really order " + item + "?", {"sure": bool})
    if answer["action"] != "accept":
        return "no"
    return item + " is ordered" if answer["content"]["sure"] else "left"
'''
BROKEN = '''
def broken(item: str) -> int:
    """Fail."""
    numbers = {}
    return numbers[item]
'''


def script(code: str = SCRIPT, **others: Any) -> PrimitiveFields:
    return PrimitiveFields("", {"code": dedent(code).strip()}, kind="script", **others)


def function(reference: str) -> PrimitiveFields:
    return PrimitiveFields("", {"function": reference})


@pytest.fixture
async def acme(asking: Cast) -> Cast:
    process.start()
    return asking


@pytest.fixture
def trial(acme: Cast) -> TrialRequest:
    """A trial of a script that is nowhere saved."""
    return TrialRequest(
        acme.operator.user, acme.acme.id, script(), {"item": "tea"}, host="testserver"
    )


def answered(trial: TrialRequest, before: TrialResult, **responses: Any) -> TrialRequest:
    return replace(trial, state=before.state, responses=responses)


def reason(given: TrialResult) -> str:
    assert given.error is not None, given
    assert given.result is None
    return given.error.message


def text(given: TrialResult) -> str:
    assert given.result is not None, given
    found: str = given.result["content"][0]["text"]
    return found


async def entries(given: TrialResult) -> list[Entry]:
    found = Entry.objects.filter(call=given.call).order_by("at", "id")
    return await in_database(lambda: list(found))


async def test_a_draft_runs_as_for_a_client_and_is_recorded_as_a_trial(
    acme: Cast, trial: TrialRequest
):
    first = await trials.run(trial)
    assert first.requests["sure"]["params"]["message"] == "Really order tea?"
    assert (first.result, first.error, first.number) == (None, None, 1)
    progress, said, response = first.received
    assert progress["params"] == {
        "progressToken": "trial",
        "progress": 1.0,
        "total": 2.0,
        "message": "looking",
    }
    assert said["params"]["data"] == {"looked": "tea"}
    assert response["result"]["resultType"] == "input_required"
    assert response["result"]["requestState"] == OPAQUE
    assert first.state not in str(first.received)
    second = await trials.run(answered(trial, first, sure=accept(sure=True)))
    assert text(second) == "tea is ordered"
    assert (second.call, second.number, second.state) == (first.call, 2, "")
    assert [one.get("method") for one in second.received] == [None]
    assert second.received[-1]["result"]["resultType"] == "complete"
    assert not await in_database(Primitive.objects.filter(kind="script").exists)
    found = await entries(second)
    assert {one.delivery for one in found} == {"playground"}
    operator = str(acme.operator.user.pk)
    assert {(one.actor_kind, one.actor_id) for one in found} == {("person", operator)}
    assert {one.client_name for one in found} == {"mcphost console"}
    (answer,) = [one for one in found if one.action == ANSWER_RECEIVED]
    assert (answer.facts or {})["evidence"] == "playground"
    assert {one.target_version.partition("+")[0] for one in found} == {"draft"}
    assert text(await trials.run(answered(trial, first, sure=accept(sure=True)))) == text(second)
    other = await trials.run(answered(trial, first, sure=accept(sure=False)))
    assert "requestState is not valid" in reason(other)
    rounds = [one.outcome for one in await entries(first) if one.action == ROUND_FINISHED]
    assert rounds == ["input_required", "complete"], "the same answers run nothing"


async def test_a_trial_state_is_valid_for_one_operator_tenant_definition_and_arguments_only(
    acme: Cast, trial: TrialRequest
):
    changes: tuple[dict[str, Any], ...] = (
        {"operator": acme.owner.user},
        {"arguments": {"item": "coffee"}},
        {"definition": script(SCRIPT.replace("Really", "Surely"))},
        {"tenant": acme.globex.id, "operator": acme.staff.user},
    )
    first = await trials.run(trial)
    for number, change in enumerate(changes, 1):
        taken = replace(answered(trial, first, sure=accept(sure=True)), **change)
        assert "requestState is not valid" in reason(await trials.run(taken)), change
        refused = Entry.objects.filter(action=STATE_REFUSED)
        assert await in_database(refused.count) == number
        assert await in_database(refused.filter(tenant=taken.tenant).exists)


async def test_states_of_trials_and_of_clients_are_not_interchangeable(
    acme: Cast, trial: TrialRequest
):
    asker = calling(acme.operator.mcp_token, "paint", what="a wall")
    clients = state_of(await asker.leg())
    of_client = replace(trial, state=clients, responses={"colour": accept(colour="red")})
    assert "requestState is not valid" in reason(await trials.run(of_client))
    trying = replace(trial, definition=function("asking.paint"), arguments={"what": "a wall"})
    first = await trials.run(trying)
    assert first.state
    assert frozen(await asker.leg(first.state, {}))


async def test_only_users_who_may_edit_tools_can_try_them(acme: Cast, trial: TrialRequest):
    for person in (acme.auditor, acme.member, acme.stranger):
        with pytest.raises(PermissionDenied):
            await trials.run(replace(trial, operator=person.user))
    for person in (acme.owner, acme.operator, acme.staff):
        assert (await trials.run(replace(trial, operator=person.user))).requests


async def test_a_revoked_permission_ends_the_trial_at_its_next_round(
    acme: Cast, trial: TrialRequest
):
    first = await trials.run(trial)
    await in_database(close_tenant, acme.acme.id, actor=ACTOR)
    with pytest.raises(PermissionDenied):
        await trials.run(answered(trial, first, sure=accept(sure=True)))


async def test_a_definition_that_is_invalid_or_not_granted_is_not_run(
    acme: Cast, trial: TrialRequest
):
    with pytest.raises(InvalidPrimitiveError) as refused:
        await trials.run(replace(trial, definition=script("def")))
    assert list(refused.value.problems) == ["config.code"]
    tenant, operator = acme.globex.id, acme.stranger.user
    foreign = replace(trial, tenant=tenant, operator=operator, definition=function("probe.write"))
    with pytest.raises(InvalidPrimitiveError, match="not granted"):
        await trials.run(foreign)


async def test_the_failing_line_of_a_script_is_shown_to_its_operator_only(trial: TrialRequest):
    given = await trials.run(replace(trial, definition=script(BROKEN)))
    assert "The tool failed" in text(given)
    assert given.detail.startswith("line 4 in broken")
    assert "KeyError" in given.detail
    assert "line 4" not in orjson.dumps(given.received).decode()


async def test_trials_count_against_the_limits_of_the_tenant(acme: Cast, trial: TrialRequest):
    fields = TenantFields(title="Acme", calls_per_minute=1)
    await in_database(update_tenant, acme.acme.id, fields, actor=ACTOR)
    assert (await trials.run(trial)).requests
    assert "Over the limit of 1 calls per minute" in reason(await trials.run(trial))
