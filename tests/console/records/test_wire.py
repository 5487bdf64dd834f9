"""Tests of the messages and the `curl` command on a call's page, and who may see which."""

import base64
import json
import re
import shlex
from typing import Any

import pytest
from django.test import Client

from mcphost.audit.entries import PayloadView, view
from mcphost.audit.timeline import Timeline, timeline
from mcphost.console.records import wire
from mcphost.console.records.call_curl import CurlCommand, Repetition, repeat
from mcphost.console.records.wire import NOT_KEPT, WireMessage
from mcphost.console.templatetags.wire import (
    fingerprint,
    fingerprinted,
)
from mcphost.protocol.schemas import ParamHeader
from tests.audit.recorded_calls import Story, row
from tests.console.records.test_calls import CALLS, a_story, page_of, shown
from tests.console.tenant_data import Things, asking, told
from tests.tasks.rows import a_task

URL = "http://testserver/t/acme/mcp"
HOSTILE = "</pre><script>alert(1)</script>\u202e'\"$(id)`id`"


def read(story: Story) -> Timeline:
    return timeline([view(row(each)) for each in story.made], story.at)


def payloads(story: Story) -> dict[Any, PayloadView]:
    return {
        each.id: PayloadView(each.id, content=each.payload)
        for each in story.made
        if each.payload is not None
    }


def messages(story: Story) -> list[tuple[WireMessage, ...]]:
    return list(wire.messages_of_call(read(story), payloads(story)).values())


def two_rounds(**columns: Any) -> Story:
    story = Story()
    story.call = story.call._replace(arguments={"a": 1}, **columns)
    story.play("start; ask colour; back; answer colour; start; end")
    return story


def test_a_request_and_its_retry_are_reconstructed_as_sent_by_the_client() -> None:
    first, second = messages(two_rounds())
    assert [each.sender for each in (*first, *second)] == ["client", "server"] * 2
    assert first[0].body["params"]["arguments"] == {"a": 1}
    assert "inputResponses" not in first[0].body["params"]
    asked = first[1].body["result"]
    assert asked["resultType"] == "input_required"
    assert asked["inputRequests"]["colour"]["method"] == "elicitation/create"
    assert asked["requestState"] == NOT_KEPT
    params = second[0].body["params"]
    assert params["inputResponses"] == {"colour": {"action": "accept", "content": {"colour": "x"}}}
    assert params["requestState"] == NOT_KEPT
    assert second[1].body["result"] == {"resultType": "complete", "outcome": "complete"}


def headers(command: CurlCommand) -> dict[str, str]:
    words = shlex.split(command.text)
    pairs = [words[at + 1].split(": ", 1) for at, word in enumerate(words) if word == "-H"]
    return {each[0]: each[1] for each in pairs}


def body(command: CurlCommand) -> Any:
    return json.loads(shlex.split(command.text)[-1])


def test_the_curl_command_has_the_headers_of_its_revision_and_no_credential() -> None:
    command = repeat(Repetition(URL, read(two_rounds()), {"a": 1}))
    assert headers(command)["Authorization"] == "Bearer $MCP_TOKEN"
    assert headers(command)["Mcp-Method"] == "tools/call"
    assert body(command)["params"]["arguments"] == {"a": 1}
    capable = body(command)["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
    assert set(capable) == {"elicitation"}


def test_the_curl_command_sends_header_parameters_as_headers() -> None:
    story = Story()
    story.call = story.call._replace(target="wh\u00e4lt")
    story.end()
    mirrored = (
        ParamHeader(("where", "region"), "Region", "string"),
        ParamHeader(("dry",), "Dry", "boolean"),
        ParamHeader(("n",), "N", "integer"),
        ParamHeader(("none",), "None", "string"),
    )
    arguments = {"where": {"region": "S\u00fcd "}, "dry": True, "n": 3}
    found = headers(repeat(Repetition(URL, read(story), arguments, mirrored)))
    assert (found["Mcp-Param-Dry"], found["Mcp-Param-N"]) == ("true", "3")
    assert "Mcp-Param-None" not in found
    for value, text in (
        (found["Mcp-Param-Region"], "S\u00fcd "),
        (found["Mcp-Name"], "wh\u00e4lt"),
    ):
        assert value.startswith("=?base64?")
        assert base64.b64decode(value[9:-2]).decode() == text
    hidden = repeat(Repetition(URL, read(story), None, mirrored[:1]))
    assert "`Mcp-Param-Region` with the argument `where.region`" in hidden.notes[1]


def test_hostile_arguments_are_quoted_as_one_shell_word() -> None:
    story = Story()
    story.call = story.call._replace(target=HOSTILE)
    story.end()
    command = repeat(Repetition(URL, read(story), {"text": HOSTILE}))
    assert command.text.isascii()
    assert body(command)["params"] | {"_meta": {}} == {
        "_meta": {},
        "name": HOSTILE,
        "arguments": {"text": HOSTILE},
    }
    hidden = repeat(Repetition(URL, read(story)))
    assert hidden.text.endswith('"arguments": \'"$ARGUMENTS"\'}}\'')


def test_request_states_and_task_ids_are_shown_as_fingerprints() -> None:
    secret = "mcph_state_secret"
    found = json.dumps(
        fingerprinted([{"requestState": secret, "task": {"taskId": secret, "ttl": 1}}])
    )
    assert secret not in found
    assert found.count(fingerprint(secret)) == 2
    assert re.fullmatch(r"[0-9a-f]{4}(-[0-9a-f]{4}){2}", fingerprint(secret))
    assert fingerprint(secret) != fingerprint("another")


@pytest.mark.django_db
@pytest.mark.parametrize("who", ["operator", "auditor"])
def test_the_call_page_without_payloads_shows_no_messages_or_arguments(cast, browse, acme, who):
    story = asking(acme)
    told(story)
    page = shown(browse(getattr(cast, who)), page_of(story))
    assert "canary-acme-argument" not in page
    assert "On the wire" not in page
    assert '"arguments": \'"$ARGUMENTS"\'' in page
    assert "Waiting for “Colour”" in page
    assert "authenticated by token tok_1" in page


@pytest.mark.django_db
def test_an_auditor_sees_the_messages_and_the_arguments_in_the_curl_command(
    auditor: Client, acme: Things
):
    story = asking(acme)
    told(story)
    page = shown(auditor, f"{page_of(story)}payloads/")
    assert page.count("On the wire: 2 messages") == 2
    assert "canary-acme-argument" in page.split("Call it again with curl")[1]


@pytest.mark.django_db
def test_no_page_shows_session_ids_or_task_ids(auditor: Client, staff: Client, acme: Things):
    session, story = "5e551011-0000-4000-8000-000000000000", a_story(acme)
    story.play("start; ask sure; refuse late answer.refused sure")
    story.made[-1] = story.made[-1]._replace(facts={"key": "sure", "session": session})
    told(story)
    task = a_task(acme.tenant, story.call.id, tool="deploy").id
    task_page = f"/admin/t/acme/tasks/{story.call.id}/"
    assert fingerprint(task) in auditor.get(task_page).content.decode()
    for client, path in (
        (auditor, page_of(story)),
        (auditor, f"{page_of(story)}payloads/"),
        (auditor, task_page),
        (auditor, "/admin/t/acme/tasks/"),
        (auditor, "/admin/t/acme/refusals/"),
        (auditor, "/admin/t/acme/audit-log/"),
        (auditor, f"{CALLS}export.jsonl"),
        (staff, "/admin/refusals/"),
        (staff, "/admin/audit-log/"),
    ):
        text = client.get(path).content.decode()
        assert session not in text, path
        assert str(task) not in text, path
