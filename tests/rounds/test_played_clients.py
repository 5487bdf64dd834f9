"""A trial plays a client of any revision: it gets what such a client gets, decided by the same code."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.services import grant_function
from mcphost.protocol.tasks import EXTENSION
from mcphost.routing import process
from mcphost.sealing.tokens import key_id
from mcphost.serving.context import TaskMode
from mcphost.serving.database import in_database
from mcphost.serving.execution import trials
from mcphost.serving.execution.deliveries import TRIAL_SECONDS
from mcphost.serving.execution.played_client import OPAQUE, PlayedClient
from mcphost.serving.execution.trials import REFUSAL, TrialRequest, TrialResult
from tests.cast import ACTOR, Cast
from tests.plugins.canaries import CANARY
from tests.rounds.client_steps import EVERYTHING, FORMS, accept, calling
from tests.serving.legacy.callers import Caller

pytestmark = pytest.mark.django_db(transaction=True)

ASKING = '''
async def order(item: str) -> dict:
    """Order something."""
    progress(1, 2, "looking")
    answer = await ask("size", "Which size?", {"type": "object", "properties": {"size": {"type": "string",
        "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]}}})
    return {"action": answer["action"]}
'''
SESSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LACKING: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("form", {}),
    ("form", {"elicitation": {"url": {}}}),
    ("url", FORMS),
    ("sampling", FORMS),
    ("roots", FORMS),
)


@pytest.fixture
async def asking(asking: Cast) -> Cast:
    """As everywhere, with a process that records."""
    process.start()
    return asking


def trial(cast: Cast, client: PlayedClient, how: str) -> TrialRequest:
    fields = PrimitiveFields("", {"function": "careless.asks_the_undeclared"})
    return TrialRequest(cast.operator.user, cast.acme.id, fields, {"how": how}, client=client)


def script(cast: Cast, client: PlayedClient) -> TrialRequest:
    fields = PrimitiveFields("", {"code": ASKING.strip()}, kind="script")
    return TrialRequest(cast.operator.user, cast.acme.id, fields, {"item": "tea"}, client=client)


def answered(before: TrialRequest, asked: TrialResult, **responses: Any) -> TrialRequest:
    return TrialRequest(
        before.operator,
        before.tenant,
        before.definition,
        before.arguments,
        client=before.client,
        state=asked.state,
        responses=responses,
    )


async def test_a_stateless_client_without_a_capability_is_refused_as_a_real_one(
    asking: Cast,
) -> None:
    for how, declares in LACKING:
        asker = calling(asking.owner.mcp_token, "asks_the_undeclared", how=how)
        real = await asker.but(capabilities=declares).leg()
        played = await trials.run(trial(asking, PlayedClient(declares=declares), how))
        assert real.error["code"] == -32021
        assert played.received[-1]["error"] == real.error, (how, declares)


async def test_a_session_client_without_a_capability_gets_the_result_of_a_real_one(
    asking: Cast,
) -> None:
    for revision in SESSIONS:
        for how, declares in (*LACKING, ("form", EVERYTHING), ("url", EVERYTHING)):
            caller = await Caller.at(asking, revision=revision, capabilities=declares)
            call = caller.call("asks_the_undeclared", how=how)
            json = await call.settled()
            played = await trials.run(trial(asking, PlayedClient(revision, declares), how))
            if json is None:
                assert played.requests, (revision, how, declares)
                continue
            end = played.received[-1]
            assert end["result"]["isError"] is True, end
            assert end["result"]["content"][0]["text"] in json.body.decode()


async def test_a_session_is_begun_and_input_is_requested_as_its_revision_has_it(
    asking: Cast,
) -> None:
    client = PlayedClient("2025-06-18")
    begun = client.initialization({"name": "mcphost", "title": "Acme", "version": "1"})
    assert begun is not None
    request, response = begun
    assert request["params"]["protocolVersion"] == "2025-06-18"
    assert "extensions" not in request["params"]["capabilities"]
    assert response["result"]["protocolVersion"] == "2025-06-18"
    first = await trials.run(script(asking, client))
    progress, question = first.received
    assert progress["params"]["progressToken"] == "trial"
    assert (question["id"], question["method"]) == (OPAQUE, "elicitation/create")
    field = question["params"]["requestedSchema"]["properties"]["size"]
    assert (field["enum"], field["enumNames"]) == (["s", "l"], ["Small", "Large"])
    assert "mode" not in question["params"]
    done = await trials.run(answered(script(asking, client), first, size=accept(size="s")))
    assert (done.number, done.received[-1]["id"]) == (2, 1)
    assert done.received[-1]["result"]["structuredContent"] == {"action": "accept"}
    assert "resultType" not in done.received[-1]["result"]
    old = await trials.run(script(asking, PlayedClient("2025-03-26")))
    assert (old.result or {})["isError"] is True, "the revision has no elicitation"


async def test_a_state_belongs_to_the_revision_of_its_client(asking: Cast) -> None:
    client = PlayedClient("2025-11-25")
    first = await trials.run(trial(asking, client, "sampling"))
    assert list(client.responses(2, {}, {"question": REFUSAL})) == [
        {"jsonrpc": "2.0", "id": OPAQUE, **REFUSAL}
    ]
    done = await trials.run(answered(trial(asking, client, "sampling"), first, question=REFUSAL))
    assert (done.result or {})["isError"] is True


@pytest.mark.parametrize(
    ("support", "client", "task", "refused"),
    [
        ("always", PlayedClient(), TaskMode.AT_ONCE, ""),
        ("slow", PlayedClient(), TaskMode.IF_SLOW, ""),
        ("slow", PlayedClient(declares={}), TaskMode.NEVER, ""),
        ("required", PlayedClient(), TaskMode.AT_ONCE, ""),
        ("required", PlayedClient(declares={}), TaskMode.NEVER, EXTENSION),
        ("required", PlayedClient("2025-11-25"), TaskMode.AT_ONCE, ""),
        ("required", PlayedClient("2025-11-25", {}), TaskMode.NEVER, "task"),
        ("never", PlayedClient("2025-11-25"), TaskMode.NEVER, ""),
    ],
)
async def test_tasks_are_offered_to_the_clients_that_can_follow_them(
    asking: Cast, support: str, client: PlayedClient, task: TaskMode, refused: str
) -> None:
    config = {"code": 'def order() -> str:\n    """Order."""\n    return "tea"', "tasks": support}
    fields = PrimitiveFields("", config, kind="script")
    tried = await trials.run(
        TrialRequest(asking.operator.user, asking.acme.id, fields, {}, client=client)
    )
    assert tried.task is task
    if refused:
        assert tried.error is not None
        assert refused in tried.error.message
    else:
        assert tried.error is None


async def test_all_messages_of_a_round_are_shown_with_what_seals_its_state(asking: Cast) -> None:
    first = script(asking, PlayedClient("2025-11-25"))
    began = await trials.run(first)
    senders = [(message.sender, message.body.get("method")) for message in began.exchanged]
    assert senders == [
        ("client", "initialize"),
        ("server", None),
        ("client", "tools/call"),
        ("server", "notifications/progress"),
        ("server", "elicitation/create"),
    ]
    times = [message.at for message in began.exchanged]
    assert times == sorted(times)
    assert began.sealed is not None
    assert (began.sealed.size, began.sealed.key) == (len(began.state), key_id(began.state))
    assert 0 < began.sealed.expires_at - began.began <= TRIAL_SECONDS + began.seconds
    done = await trials.run(answered(first, began, size=accept(size="s")))
    assert [message.sender for message in done.exchanged] == ["client", "server"]
    assert done.sealed is None


async def test_secret_arguments_are_redacted_in_the_messages_of_a_trial(asking: Cast) -> None:
    fields = PrimitiveFields("", {"function": "probe.write"})
    await in_database(grant_function, asking.acme.id, "probe.write", ACTOR)
    done = await trials.run(
        TrialRequest(asking.operator.user, asking.acme.id, fields, {"text": CANARY})
    )
    assert done.error is None
    request = done.exchanged[0].body
    assert request["params"]["arguments"] == {"text": "[redacted]"}


async def test_a_call_that_was_refused_before_it_ran_has_no_record(asking: Cast) -> None:
    config = {
        "code": 'def order() -> str:\n    """Order."""\n    return "tea"',
        "tasks": "required",
    }
    fields = PrimitiveFields("", config, kind="script")
    refused = TrialRequest(
        asking.operator.user, asking.acme.id, fields, {}, client=PlayedClient(declares={})
    )
    assert not (await trials.run(refused)).is_recorded
    assert (await trials.run(replace(refused, client=PlayedClient()))).is_recorded
