"""Tools that ask people something in the middle of their work, each one a way of asking.

A round runs a function again from the top, with the answers that came back. What it does to the
world it does in steps, which are not run again.
"""

import asyncio
from typing import Annotated, Any, Literal

from pydantic import Field

from mcphost.sdk import (
    Context,
    Form,
    Text,
    ToolAnnotations,
    ToolError,
    current,
    prompt,
    resource,
    tool,
)

WRITES = ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False
)
READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)


WORK_ITEMS: dict[int, dict[str, Any]] = {
    4301: {
        "System.WorkItemType": "Bug",
        "System.Title": "The total is wrong for more than 99 items",
        "System.State": "Active",
    },
    4522: {
        "System.WorkItemType": "Bug",
        "System.Title": "Carts with 100 items show a negative price",
        "System.State": "Active",
    },
    4610: {
        "System.WorkItemType": "Task",
        "System.Title": "Write the release notes",
        "System.State": "New",
    },
}
"""What is there before anything was saved."""


class Resolution(Form):
    resolution: Annotated[
        Literal["Fixed", "Won't Fix", "Duplicate", "By Design"],
        Field(description="Resolution type for this bug"),
    ]


class DuplicateOf(Form):
    duplicateOfId: Annotated[  # noqa: N815 - the form's name for it
        float, Field(description="Work item ID of the original bug")
    ]


@tool(title="Update work item", annotations=WRITES, unasked=True)
async def update_work_item(
    ctx: Context,
    workItemId: Annotated[int, Field(description="4301, 4522 or 4610.")],  # noqa: N803 - the tool's name for it
    fields: Annotated[
        dict[str, Any], Field(min_length=1, description='{"System.State": "Resolved"}')
    ],
) -> str:
    """Change fields of a work item. A bug that is resolved needs a resolution, which is asked for.

    In the example of SEP-2322 the client sends the first answer without a state, which is why this
    tool takes answers that no state has asked for (`unasked`).
    """
    kind = (await ctx.step("load", load, workItemId))["System.WorkItemType"]
    changes, outcome = dict(fields), f"updated: {', '.join(fields)}."
    if kind == "Bug" and fields.get("System.State") == "Resolved":
        message = f"Resolving Bug #{workItemId} requires a resolution. How was this bug resolved?"
        resolution = (await ctx.elicit("resolution", message, Resolution)).resolution
        changes["Resolution"] = resolution
        outcome = f"resolved as {resolution}. State set to Resolved."
        if resolution == "Duplicate":
            message = "Since this is a duplicate, which work item is the original?"
            original = (await ctx.elicit("duplicate_of", message, DuplicateOf)).duplicateOfId
            changes["Duplicate Of"] = original
            outcome = (
                f"resolved as Duplicate of Bug #{original:.15g}. "
                "State set to Resolved and duplicate link created."
            )
    await ctx.step("save", save, workItemId, changes)
    return f"{kind} #{workItemId} {outcome}"


async def load(number: int) -> dict[str, Any]:
    """A step: the fields of a work item."""
    fields: dict[str, Any] = (await _read_item(number))[0]["fields"]
    return fields


async def save(number: int, changes: dict[str, Any], idempotency_key: str = "") -> None:
    """A step: change a work item once, even if the step runs twice, or another call changes it meanwhile."""
    while True:
        item, revision = await _read_item(number)
        if idempotency_key in item["saves"]:
            return
        fields = {**item["fields"], **changes}
        saves = [*item["saves"][-99:], idempotency_key]
        if await current().store.put(_key(number), {"fields": fields, "saves": saves}, revision):
            return


async def _read_item(number: int) -> tuple[dict[str, Any], int]:
    """What the store has, or what is there from the beginning, and its revision."""
    item, revision = await current().store.get(_key(number))
    if item is None and number not in WORK_ITEMS:
        numbers = ", ".join(map(str, WORK_ITEMS))
        raise ToolError(f"There is no work item #{number}. There are {numbers}.")
    return item or {"fields": WORK_ITEMS[number], "saves": []}, revision


def _key(number: int) -> str:
    return f"work-items/{number}"


class Approval(Form):
    deploy: Annotated[bool, Field(title="Deploy it now", description="No leaves all as it is.")]


STAGES = ("Build", "Test", "Roll out", "Watch")


@tool(title="Deploy", annotations=WRITES, answer_within=10 * 60)
async def deploy(
    ctx: Context,
    service: Annotated[str, Field(min_length=1, max_length=40)],
    version: Annotated[str, Field(min_length=1, max_length=20)],
) -> str:
    """Pretend to deploy a service: ask a user to confirm it, then report progress."""
    approval = await ctx.elicit("confirm", f"Deploy {service} {version}?", Approval)
    if not approval.deploy:
        return f"{service} stays as it is."
    for done, stage in enumerate(STAGES):
        ctx.progress(done, len(STAGES), f"{stage}…")
        await ctx.step(stage, run_stage, service, version)
    ctx.progress(len(STAGES), len(STAGES), "Deployed")
    return f"{service} {version} is deployed."


async def run_stage(service: str, version: str) -> None:
    """A step: once it is recorded, no other round runs it again."""
    await asyncio.sleep(0.2)


class When(Form):
    day: Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]
    hour: Annotated[int, Field(ge=8, le=18)] = 10


class Where(Form):
    room: Annotated[str, Field(min_length=1, max_length=40, description="Its name.")]


@tool(title="Arrange a meeting", annotations=READ_ONLY)
async def arrange_meeting(ctx: Context, topic: str) -> str:
    """Ask two questions side by side: they reach the client together, in one round."""
    when, where = await asyncio.gather(
        ctx.elicit("when", f"When shall we talk about {topic}?", When),
        ctx.elicit("where", "And in which room?", Where),
    )
    return f"{topic}: {when.day}, {when.hour}:00, in {where.room}."


@tool(title="Summarize", annotations=READ_ONLY)
async def summarize(ctx: Context, text: str) -> str:
    """Have the client's own model sum a text up."""
    sampled = await ctx.sample(
        "summary",
        f"Sum this up in one sentence:\n\n{text}",
        max_tokens=200,
        system_prompt="You are brief.",
    )
    if not isinstance(sampled.content, Text):
        raise ToolError("The model did not answer with a text.")
    return sampled.content.text


@tool(title="Sign off", annotations=READ_ONLY, requires=["elicitation.url"])
async def sign_off(
    ctx: Context, release: Annotated[str, Field(min_length=1, max_length=40)]
) -> str:
    """Have the caller's own user sign a release off: signed in, on a page of this server."""
    page = ctx.done_url("signed")
    consent = await ctx.ask_url("page", f"Open this page to sign {release} off.", page)
    if not consent.accepted:
        return f"{release} is not signed off."
    signed = await ctx.wait_for("signed", 120)
    return f"{release} is signed off." if signed else "It was not signed off in time."


class Guest(Form):
    name: Annotated[str, Field(min_length=1, max_length=80)]
    tone: Literal["formal", "friendly"] = "friendly"


@prompt(title="Write an invitation")
async def write_invitation(ctx: Context, occasion: str) -> str:
    """A prompt that asks who is invited before it is used."""
    guest = await ctx.elicit("guest", f"Whom do you invite to {occasion}?", Guest)
    return f"Write a {guest.tone} invitation to {occasion} for {guest.name}."


class Language(Form):
    language: Literal["Dutch", "French", "German", "Portuguese"]


GREETINGS = {"Dutch": "Goedendag", "French": "Bonjour", "German": "Guten Tag", "Portuguese": "Olá"}


@resource("demo://greeting", title="A greeting")
async def greeting(ctx: Context) -> str:
    """A resource that asks in which language it is read."""
    answer = await ctx.elicit("language", "In which language?", Language)
    return f"{GREETINGS[answer.language]}!"
