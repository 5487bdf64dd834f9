"""Tests of the values of a round: the caller, the outcomes, and the default ports."""

from datetime import UTC
from uuid import uuid4

import pytest

from mcphost.egress.client import EgressLimits
from mcphost.egress.errors import EgressAddressError
from mcphost.egress.messages import OutgoingRequest
from mcphost.runtime.call import Client, Principal, PrincipalKind
from mcphost.runtime.journal import EMPTY, Answer, Journal, as_json, from_json
from mcphost.runtime.outcomes import Complete, InputRequest
from mcphost.runtime.ports import (
    FixedPorts,
    LinkRefusedError,
    NullNotifier,
    RoundLimits,
    StoreRefusedError,
    SystemClock,
    SystemRandomness,
)
from mcphost.runtime.threads import ToolThreads


def test_a_principal_may_do_what_its_scopes_allow() -> None:
    principal = Principal(PrincipalKind.TOKEN, uuid4(), scopes=frozenset({"mcp:call"}))
    assert principal.may("mcp:call")
    assert not principal.may("mcp:list")


@pytest.mark.parametrize(
    ("capability", "declared"),
    [
        ("elicitation", True),
        ("elicitation.url", True),
        ("elicitation.form", False),
        ("sampling", False),
    ],
)
def test_a_client_supports_the_capabilities_it_declared(capability: str, declared: bool) -> None:
    client = Client(capabilities={"elicitation": {"url": {"deeper": 1}}})
    assert client.can(capability) is declared


def test_a_complete_outcome_reports_whether_it_is_an_error() -> None:
    assert Complete({"isError": True}).is_error
    assert not Complete({"content": []}).is_error


def test_the_default_ports_have_a_silent_notifier_and_the_system_clock() -> None:
    ports = FixedPorts(threads=ToolThreads(1))
    ports.notifier.progress(1, None, None)
    ports.notifier.log("info", "nothing is sent", None)
    assert isinstance(ports.notifier, NullNotifier)
    ports.announcer.updated("notes://today")
    ports.announcer.list_changed("tool")
    assert isinstance(ports.clock, SystemClock)
    assert ports.clock.now().tzinfo is UTC
    assert len(SystemRandomness().bytes(24)) == 24
    assert ports.limits == RoundLimits(seconds=None, result_bytes=8 * 1024 * 1024)


def test_an_elicitation_capability_without_modes_means_forms() -> None:
    assert Client(capabilities={"elicitation": {}}).can("elicitation.form")
    assert not Client(capabilities={"elicitation": {}}).can("elicitation.url")


async def test_the_default_ports_refuse_storage_and_links() -> None:
    ports = FixedPorts(threads=ToolThreads(1))
    for kept in (ports.store.get("a"), ports.store.put("a", 1, 0)):
        with pytest.raises(StoreRefusedError):
            await kept
    for make in (ports.links.page, ports.links.callback):
        with pytest.raises(LinkRefusedError):
            make("a")
    with pytest.raises(LinkRefusedError):
        await ports.links.wait("a", 1, ())
    assert not ports.reason_to_move()


def test_the_default_ports_make_no_call_a_task_and_publish_nothing() -> None:
    ports = FixedPorts(threads=ToolThreads(1))
    assert not ports.may_defer()
    ports.publish(InputRequest("name", "elicitation/create", {}))


def test_a_response_in_a_journal_is_never_overwritten() -> None:
    first, second = Answer("q", "1", {"a": 1}), Answer("q", "1", {"a": 2})
    journal = EMPTY.with_answer("k", first)
    assert journal.with_answer("k", second) is journal
    assert journal.with_answer("k", Answer("other", "1", {})).answer("k", "q") == first
    assert EMPTY.answers == {}


def test_a_journal_names_its_largest_part() -> None:
    assert EMPTY.largest() == "the journal is empty"
    journal = Journal(recorded={"step a": "x"}).with_answer("k", Answer("q", "1", {"a": "long"}))
    assert journal.largest() == "the largest part is the answer to 'k', with 12 bytes"
    assert "'step a', with 3 bytes" in Journal(recorded={"step a": "x"}).largest()


def test_a_paused_program_stays_in_the_journal_when_responses_are_added() -> None:
    paused = Journal(paused={"image": "x" * 50}).with_answer("k", Answer("q", "1", {}))
    assert paused.paused == {"image": "x" * 50}
    assert from_json(as_json(paused)) == paused
    assert from_json([{}, {}, None]) == EMPTY
    assert "the paused program" in paused.largest()


async def test_the_default_ports_send_no_http_request() -> None:
    ports = FixedPorts(threads=ToolThreads(1))
    with pytest.raises(EgressAddressError):
        await ports.http.send(OutgoingRequest("https://x.example/"), EgressLimits())
