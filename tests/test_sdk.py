"""Tests of the SDK that authors import: marking a function does not change it."""

import re
from collections.abc import Mapping
from typing import Any

import pytest

from mcphost.runtime.notification_channel import CallEndedError
from mcphost.runtime.ports import NotAnnouncedError
from mcphost.sdk import (
    CapabilityMissingError,
    Context,
    TaskSupport,
    ToolDefinition,
    ToolError,
    context,
    current,
    tool,
)
from mcphost.sdk.marking import ATTRIBUTE
from tests.kinds.rounds import TENANT, Notes, a_call, ports
from tests.runtime.rounds import a_round


def definition(function: Any) -> ToolDefinition:
    marked = getattr(function, ATTRIBUTE)
    assert isinstance(marked, ToolDefinition)
    return marked


def test_a_positional_name_is_refused_with_advice() -> None:
    with pytest.raises(TypeError, match="takes its options by name"):
        tool("double")  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"time_limit": 0}, "time_limit must be above 0"),
        ({"time_limit": float("nan")}, "time_limit must be above 0"),
        ({"threads": 0}, "threads must be above 0"),
        *(
            ({"tasks": "always", "retries": bad}, "retries is from 0 to 20")
            for bad in (-1, 21, "3")
        ),
        ({"retries": 1}, "only rounds of tasks are retried"),
        *(({"tasks": bad}, f"never, slow, always, required: not {bad!r}") for bad in ("", None)),
        ({"requires": "sampling"}, 'requires is a list of capabilities: ["sampling"]'),
    ],
)
def test_a_wrong_option_is_refused_with_advice(options: Mapping[str, Any], words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(words)):
        tool(**options)


@pytest.mark.parametrize("value", [*TaskSupport, *map(str, TaskSupport)])
def test_task_support_can_be_set_by_text_or_by_value(value: Any) -> None:
    @tool(tasks=value)
    def function() -> None: ...

    assert definition(function).task_support is TaskSupport(value)


@pytest.mark.parametrize(
    ("capability", "shape"),
    [("sampling", {"sampling": {}}), ("elicitation.url", {"elicitation": {"url": {}}})],
)
def test_a_missing_capability_has_the_shape_of_capabilities(
    capability: str, shape: dict[str, Any]
) -> None:
    missing = CapabilityMissingError(capability)
    assert missing.required == shape
    assert str(missing) == f"This tool needs a client with the capability {capability!r}."


async def test_a_context_sends_notifications_reports_capabilities_and_ends() -> None:
    notes = Notes()
    with a_round(outside=ports(notes), call=a_call(sampling={})) as round:
        ctx = Context(round)
        ctx.progress(1, 2, "half")
        ctx.debug(1)
        ctx.info(2)
        ctx.warning(3)
        ctx.error(4, logger="here")
        ctx.log("critical", 5)
        ctx.require("sampling")
        with pytest.raises(CapabilityMissingError):
            ctx.require("elicitation")
        assert (ctx.tenant, ctx.principal, ctx.client, ctx.round) == (
            TENANT,
            "Ada's laptop",
            "Inspector",
            1,
        )
        assert ctx.call_id.version == 4
        assert notes.progressed == [(1, 2, "half")]
        assert [said[0] for said in notes.logged] == [
            "debug",
            "info",
            "warning",
            "error",
            "critical",
        ]
        round.channel.end()
        with pytest.raises(CallEndedError):
            ctx.require("sampling")


class OneResource:
    """Announces one URI and no other."""

    def __init__(self) -> None:
        self.announced: list[str] = []

    def updated(self, uri: str) -> None:
        if uri != "notes://today":
            raise NotAnnouncedError(f"no resource {uri}")
        self.announced.append(uri)

    def list_changed(self, name: str) -> None:
        self.announced.append(name)


async def test_a_refused_announcement_raises_a_tool_error() -> None:
    announcer = OneResource()
    with a_round(outside=ports()._replace(announcer=announcer)) as round:
        ctx = Context(round)
        ctx.announce("notes://today")
        with pytest.raises(ToolError, match="no resource notes://other"):
            ctx.announce("notes://other")
        ctx.announce_list("prompts")
        with pytest.raises(ValueError, match="use one of tools, prompts, resources"):
            ctx.announce_list("prompt")  # type: ignore[arg-type]
        round.channel.end()
        for announce in (lambda: ctx.announce("notes://today"), lambda: ctx.announce_list("tools")):
            with pytest.raises(CallEndedError):
                announce()
        assert announcer.announced == ["notes://today", "prompt"]


async def test_the_current_context_is_available_only_where_its_call_runs() -> None:
    with pytest.raises(RuntimeError, match="no tool is running here"):
        current()
    with a_round() as round:
        ctx = Context(round)
        token = context.RUNNING.set(ctx)
        assert current() is ctx
    with pytest.raises(RuntimeError, match=r"ctx\.in_thread"):
        current()
    context.RUNNING.reset(token)
