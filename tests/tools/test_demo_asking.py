"""The demo's tools that request input behave as the tutorial describes."""

from collections.abc import Mapping
from typing import Any

import pytest

from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.runtime.journal import Journal
from mcphost.runtime.memory import MemoryLinks
from mcphost.runtime.outcomes import Complete, Failed, FailureKind
from mcphost.runtime.ports import LinkRefusedError, Ports
from mcphost.testing import (
    CANCEL,
    DECLINE,
    Tried,
    a_call,
    accept,
    in_memory,
    model_answer,
    run_through,
)
from tests.kinds.rounds import Notes
from tests.tools.shipped_tools import assert_listable, compiled, kind, names

ALL = [
    "demo_asking.arrange_meeting",
    "demo_asking.deploy",
    "demo_asking.sign_off",
    "demo_asking.summarize",
    "demo_asking.update_work_item",
]
RESOLVE = {"workItemId": 4522, "fields": {"System.State": "Resolved"}}
DUPLICATE = {
    "resolution": accept(resolution="Duplicate"),
    "duplicate_of": accept(duplicateOfId=4301),
}


async def tried(
    name: str,
    arguments: Mapping[str, Any] | None = None,
    answers: Mapping[str, Mapping[str, Any]] | None = None,
    outside: Ports | None = None,
) -> Tried:
    program = compiled(f"demo_asking.{name}").program
    return await run_through(program, a_call(arguments), answers or {}, outside or in_memory())


async def stored(outside: Ports, number: int) -> Any:
    value, _ = await outside.store.get(f"work-items/{number}")
    return value and value["fields"]


def test_the_work_item_tool_accepts_responses_without_a_state() -> None:
    """As in the example of SEP-2322."""
    assert compiled("demo_asking.update_work_item").unasked is True


def test_the_asking_demo_has_the_expected_tools_prompts_and_resources() -> None:
    assert kind().check() == ()
    assert names("demo_asking", PrimitiveType.TOOL) == ALL
    assert names("demo_asking", PrimitiveType.PROMPT) == ["demo_asking.write_invitation"]
    assert names("demo_asking", PrimitiveType.RESOURCE) == ["demo_asking.greeting"]


@pytest.mark.parametrize("reference", names("demo_asking"))
def test_every_asking_demo_function_is_listable_and_has_a_title(reference: str) -> None:
    assert_listable(compiled(reference))
    assert compiled(reference).title


async def test_resolving_a_bug_requests_the_resolution_and_for_a_duplicate_the_original() -> None:
    outside = in_memory()
    ended = await tried("update_work_item", RESOLVE, DUPLICATE, outside)
    assert ended.asked == (("resolution",), ("duplicate_of",))
    assert ended.text == (
        "Bug #4522 resolved as Duplicate of Bug #4301. "
        "State set to Resolved and duplicate link created."
    )
    assert await stored(outside, 4522) == {
        "System.WorkItemType": "Bug",
        "System.Title": "Carts with 100 items show a negative price",
        "System.State": "Resolved",
        "Resolution": "Duplicate",
        "Duplicate Of": 4301,
    }


@pytest.mark.parametrize("answer", [DECLINE, CANCEL])
@pytest.mark.parametrize("key", DUPLICATE)
async def test_a_declined_input_request_changes_nothing(
    key: str, answer: Mapping[str, Any]
) -> None:
    outside = in_memory()
    ended = await tried("update_work_item", RESOLVE, {**DUPLICATE, key: answer}, outside)
    assert isinstance(ended.outcome, Complete)
    assert ended.outcome.is_error
    assert await stored(outside, 4522) is None


@pytest.mark.parametrize(
    ("number", "fields"),
    [(4522, {"System.Title": "Odd prices"}), (4610, {"System.State": "Resolved"})],
)
async def test_other_updates_are_saved_without_an_input_request(
    number: int, fields: dict[str, Any]
) -> None:
    outside = in_memory()
    arguments = {"workItemId": number, "fields": fields}
    ended = await tried("update_work_item", arguments, outside=outside)
    assert ended.asked == ()
    assert ended.text.endswith(f"#{number} updated: {', '.join(fields)}.")
    assert fields.items() <= (await stored(outside, number)).items()


async def test_an_unknown_work_item_is_a_tool_error() -> None:
    ended = await tried("update_work_item", {**RESOLVE, "workItemId": 1})
    assert ended.text == "There is no work item #1. There are 4301, 4522, 4610."


async def test_a_repeated_step_saves_only_once() -> None:
    """As when a process dies after the effect: the next one has the journal from before it."""
    program = compiled("demo_asking.update_work_item").program
    outside, call = in_memory(), a_call({"workItemId": 4610, "fields": {"System.State": "Done"}})
    for _ in range(2):
        assert isinstance(await program.advance(call, Journal(), outside), Complete)
    assert (await outside.store.get("work-items/4610")).revision == 1


async def test_a_deployment_requires_confirmation_and_reports_progress() -> None:
    notes = Notes()
    outside = in_memory()._replace(notifier=notes)
    arguments = {"service": "shop", "version": "1.2"}
    ended = await tried("deploy", arguments, {"confirm": accept(deploy=True)}, outside)
    assert ended.asked == (("confirm",),)
    assert ended.text == "shop 1.2 is deployed."
    assert [(done, total) for done, total, _ in notes.progressed] == [(n, 4) for n in range(5)]


async def test_a_deployment_that_is_not_confirmed_does_nothing() -> None:
    notes = Notes()
    outside = in_memory()._replace(notifier=notes)
    arguments = {"service": "shop", "version": "1.2"}
    ended = await tried("deploy", arguments, {"confirm": accept(deploy=False)}, outside)
    assert ended.text == "shop stays as it is."
    assert "declined" in (await tried("deploy", arguments, {"confirm": DECLINE}, outside)).text
    assert notes.progressed == []


async def test_a_meeting_requests_time_and_place_in_one_round() -> None:
    answers = {"when": accept(day="Monday", hour=9), "where": accept(room="Attic")}
    ended = await tried("arrange_meeting", {"topic": "Prices"}, answers)
    assert ended.asked == (("when", "where"),)
    assert ended.text == "Prices: Monday, 9:00, in Attic."


@pytest.mark.parametrize(
    ("action", "done", "text"),
    [
        ("accept", ["signed"], "v1 is signed off."),
        ("accept", [], "It was not signed off in time."),
        ("decline", ["signed"], "v1 is not signed off."),
    ],
)
async def test_a_release_is_signed_off_only_after_consent_and_confirmation_on_the_page(
    action: str, done: list[str], text: str
) -> None:
    outside, answers = in_memory(done=done), {"page": {"action": action}}
    ended = await tried("sign_off", {"release": "v1"}, answers, outside)
    assert ended.asked == (("page",),)
    assert ended.text == text


class NoPerson(MemoryLinks):
    """The links of a call whose caller is no person."""

    def page(self, key: str) -> str:
        raise LinkRefusedError("A confirmation page needs a user account.")


async def test_a_caller_without_a_user_account_gets_the_reason_why_sign_off_is_impossible() -> None:
    ended = await tried("sign_off", {"release": "v1"}, {}, in_memory()._replace(links=NoPerson()))
    assert (ended.asked, ended.text) == ((), "A confirmation page needs a user account.")


async def test_a_summary_is_written_by_the_clients_model() -> None:
    ended = await tried("summarize", {"text": "Long."}, {"summary": model_answer("Short.")})
    assert ended.text == "Short."
    picture = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    ended = await tried(
        "summarize", {"text": "Long."}, {"summary": {**model_answer(""), "content": picture}}
    )
    assert ended.text == "The model did not answer with a text."


@pytest.mark.parametrize("name", ["update_work_item", "summarize"])
async def test_a_client_without_the_needed_capability_gets_the_missing_capability(
    name: str,
) -> None:
    arguments = {"text": "Long."} if name == "summarize" else RESOLVE
    call = a_call(arguments, capabilities={})
    ended = await run_through(compiled(f"demo_asking.{name}").program, call, {}, in_memory())
    assert isinstance(ended.outcome, Failed)
    assert ended.outcome.error.kind is FailureKind.CAPABILITY_MISSING


async def test_the_invitation_prompt_requests_the_guest() -> None:
    answers = {"guest": accept(name="Ada", tone="formal")}
    ended = await tried("write_invitation", {"occasion": "the party"}, answers)
    assert ended.asked == (("guest",),)
    assert isinstance(ended.outcome, Complete)
    [message] = ended.outcome.result["messages"]
    assert message["content"]["text"] == "Write a formal invitation to the party for Ada."


async def test_the_greeting_resource_requests_the_language() -> None:
    ended = await tried("greeting", answers={"language": accept(language="Portuguese")})
    assert ended.asked == (("language",),)
    assert isinstance(ended.outcome, Complete)
    assert ended.outcome.result["contents"][0]["text"] == "Olá!"
