"""Tests of offerings: compiled once, shared, cached, and never older than the last change."""

from typing import Any
from uuid import UUID, uuid4

import orjson
import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from mcphost.catalogue import selectors, services
from mcphost.catalogue.kinds import KindError
from mcphost.catalogue.snapshots import Offering
from mcphost.feed.cache import MISS
from mcphost.feed.loop import loop
from mcphost.feed.services import announce
from mcphost.runtime.program import TaskSupport
from tests.catalogue.memory_kind import ACTOR, OTHER, TEXT, Says, Shelf, fields

ECHO_VERSION = "1+d7b1fc33"
"""The version of `demo.echo`, the same in every release."""


def publish(tenant: UUID, function: str = "demo.echo", **others: Any) -> UUID:
    tool = services.create(tenant, fields(function, **others), ACTOR).id
    services.publish(tool, ACTOR)
    return tool


def only(offering: Offering) -> selectors.ToolSnapshot:
    (tool,) = offering.tools
    return tool


@pytest.mark.django_db
def test_a_published_tool_is_served_with_its_listing_scopes_and_limits(
    acme: UUID, shelf: Shelf
) -> None:
    shelf.put(
        "demo.echo",
        title="Echo",
        output_schema=TEXT,
        annotations={"readOnlyHint": True, "idempotentHint": True},
        requires=("elicitation",),
        time_limit=4.0,
    )
    tool_id = publish(acme, scopes=("mcp:echo",))
    tool = only(selectors.offering(acme))
    assert (tool.id, tool.name, tool.scopes) == (tool_id, "echo", frozenset({"mcp:echo"}))
    assert tool.listing == {
        "name": "echo",
        "title": "Echo",
        "description": "Does echo.",
        "inputSchema": TEXT,
        "outputSchema": TEXT,
        "annotations": {"readOnlyHint": True, "idempotentHint": True},
    }
    assert orjson.loads(tool.encoded) == tool.listing
    assert tool.program == Says("demo.echo")
    assert (tool.read_only, tool.idempotent, tool.time_limit) == (True, True, 4.0)
    assert tool.requires == ("elicitation",)
    assert tool.input_validator.problems({}) != ()
    assert tool.output_validator is not None
    assert tool.param_headers == ()
    assert selectors.offering(acme).tools_by_name.get("echo") == tool
    assert selectors.offering(acme).tools_by_name.get("Echo") is None


@pytest.mark.django_db
def test_values_marked_secret_by_a_schema_are_redacted_in_arguments_and_results(
    acme: UUID, shelf: Shelf
):
    secret = {"type": "object", "properties": {"pin": {"type": "string", "writeOnly": True}}}
    shelf.put("demo.echo", input_schema=secret, output_schema=secret)
    publish(acme)
    publish(acme, "demo.add")
    hidden, plain = (
        selectors.offering(acme).tools_by_name.get("echo"),
        selectors.offering(acme).tools_by_name.get("add"),
    )
    assert hidden.input_redactor.redact({"pin": "1234"}) == {"pin": "[redacted]"}
    words = [{"type": "text", "text": '{"pin": "1234"}'}]
    result = {"content": words, "structuredContent": {"pin": "1234"}}
    assert hidden.output_redactor.redact(result) == {
        "content": "[redacted]",
        "structuredContent": {"pin": "[redacted]"},
    }
    failed = {"content": [{"type": "text", "text": "no"}], "isError": True}
    assert hidden.output_redactor.redact(failed) is failed
    assert plain.output_redactor.redact(result) is result


@pytest.mark.django_db
def test_texts_and_limits_of_the_operator_override_those_of_the_code(
    acme: UUID, shelf: Shelf
) -> None:
    shelf.put("demo.echo", title="Echo", time_limit=4.0, answer_within=60.0)
    icon = {"src": "https://example.com/a.png"}
    more = {"time_limit_seconds": 9, "answer_within_seconds": 120, "icons": (icon,)}
    publish(acme, title="Parrot", description="Repeats.", **more)
    tool = only(selectors.offering(acme))
    assert (tool.listing["title"], tool.listing["description"]) == ("Parrot", "Repeats.")
    assert tool.listing["icons"] == [icon]
    assert (tool.time_limit, tool.answer_within) == (9, 120)
    assert not tool.read_only
    assert not tool.idempotent
    assert tool.output_validator is None


@pytest.mark.requirement("tools.list.deterministic-order")
@pytest.mark.django_db
def test_the_tools_of_a_tenant_are_sorted_by_name_and_read_by_one_query(acme, globex):
    for name in ("b", "a.b", "B", "a_b", "a-b", "a"):
        publish(acme, name=name)
    with CaptureQueriesContext(connection) as queries:
        names = [tool.name for tool in selectors.offering(acme).tools]
    assert names == ["B", "a", "a-b", "a.b", "a_b", "b"]
    assert len(queries) == 1
    assert selectors.cached_offering(acme) is MISS, "read inside a transaction"
    assert selectors.offering(globex) == selectors.offering(uuid4()) == Offering()


@pytest.mark.django_db
def test_schemas_and_version_label_follow_the_current_code(acme: UUID, shelf: Shelf) -> None:
    publish(acme)
    before = only(selectors.offering(acme))
    assert (before.version, before.task_support) == (ECHO_VERSION, TaskSupport.NEVER)
    shelf.put("demo.echo", task_support=TaskSupport.REQUIRED)
    after = only(selectors.offering(acme))
    assert after.task_support is TaskSupport.REQUIRED
    assert (after.version, after.listing) == (before.version, before.listing)
    shelf.put("demo.echo", input_schema=OTHER, annotations={"readOnlyHint": True})
    after = only(selectors.offering(acme))
    assert after.listing["inputSchema"] == OTHER
    assert after.input_validator.problems({}) == ()
    assert after.read_only
    shelf.put("demo.echo", author_version="2")
    labels = {before.version, after.version, only(selectors.offering(acme)).version}
    assert len(labels) == 3
    assert all(label.startswith("1+") for label in labels)


@pytest.mark.django_db
@pytest.mark.parametrize("fault", ["gone", "broken", "illegal", "no json", "surprising"])
def test_a_tool_that_cannot_be_served_is_omitted_and_others_are_served(acme, shelf, fault):
    publish(acme, "demo.echo")
    publish(acme, "demo.add")
    match fault:
        case "gone":
            del shelf.functions["demo.add"]
        case "broken":
            shelf.broken["demo.add"] = KindError({"function": ["The file is broken."]})
        case "illegal":
            shelf.put("demo.add", input_schema={"type": "array"})
        case "no json":
            shelf.put("demo.add", input_schema={"type": "object", "default": {1, 2}})
        case _:
            shelf.broken["demo.add"] = RuntimeError("boo")
    assert only(selectors.offering(acme)).name == "echo"
    (problem,) = selectors.problems(acme)
    assert problem.name == "add"
    said = {
        "gone": "There is no function demo.add.",
        "broken": "The file is broken.",
        "illegal": "The input schema, at ",
        "no json": "The schemas are not JSON: ",
        "surprising": "It could not be loaded: RuntimeError('boo')",
    }
    assert problem.message.startswith(said[fault])


@pytest.mark.django_db(transaction=True)
def test_a_cached_offering_is_read_without_a_query(acme: UUID) -> None:
    publish(acme)
    assert selectors.cached_offering(acme) is MISS
    first = selectors.offering(acme)
    with CaptureQueriesContext(connection) as queries:
        assert selectors.offering(acme) is first
        assert selectors.cached_offering(acme) is first
    assert len(queries) == 0


@pytest.mark.django_db(transaction=True)
def test_the_next_read_in_the_same_process_sees_a_change(acme: UUID, globex: UUID) -> None:
    tool = publish(acme)
    foreign = selectors.offering(globex)
    assert only(selectors.offering(acme)).version.startswith("1+")
    services.update(tool, fields(title="Second"), ACTOR)
    services.publish(tool, ACTOR)
    assert only(selectors.offering(acme)).version.startswith("2+")
    services.disable(tool, ACTOR)
    assert selectors.offering(acme).tools == ()
    services.enable(tool, ACTOR)
    assert only(selectors.offering(acme)).version.startswith("2+")
    services.revoke_grant(acme, "demo.echo", ACTOR)
    assert selectors.offering(acme).tools == ()
    assert selectors.cached_offering(globex) is foreign


@pytest.mark.django_db(transaction=True)
def test_a_change_in_another_process_is_visible_after_one_poll(acme, globex, elsewhere):
    tool = publish(acme)
    assert selectors.offering(acme).tools
    with elsewhere():
        services.disable(tool, ACTOR)
    assert selectors.offering(acme).tools
    loop.poll()
    assert selectors.offering(acme).tools == ()
    selectors.offering(globex)
    with transaction.atomic():
        announce("tool")  # of all tenants
    assert selectors.cached_offering(acme) is selectors.cached_offering(globex) is MISS
