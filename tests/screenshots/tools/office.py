"""Made-up tools of two teams, for the pictures: what they say is the same each time."""

import asyncio
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from mcphost.sdk import Context, Form, ToolAnnotations, ToolError, tool

READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)
WRITES = ToolAnnotations(
    read_only_hint=False, destructive_hint=True, idempotent_hint=True, open_world_hint=False
)
WORK_SECONDS = 0.12
Order = Annotated[int, Field(description="Number of the order.", ge=1)]


class Customer(BaseModel):
    name: str
    city: str
    open_orders: int


class Resolution(Form):
    resolution: Annotated[
        Literal["Fixed", "Won't fix", "Duplicate", "By design"],
        Field(description="How the ticket is resolved"),
    ]


class Original(Form):
    original: Annotated[int, Field(description="Number of the original ticket")]


class Refund(Form):
    refund: Annotated[bool, Field(title="Refund it", description="No leaves the order as it is.")]


class Approval(Form):
    deploy: Annotated[bool, Field(title="Deploy it now", description="No leaves all as it is.")]


@tool(title="Find a customer", annotations=READ_ONLY)
async def find_customer(
    name: Annotated[str, Field(description="Name or e-mail address.", min_length=3)],
) -> Customer:
    """Look a customer up by name or e-mail address."""
    await asyncio.sleep(WORK_SECONDS)
    return Customer(name=name, city="Oslo", open_orders=2)


@tool(title="Resolve a ticket", annotations=WRITES)
async def resolve_ticket(
    ctx: Context, ticket: Annotated[int, Field(description="Number of the ticket.", ge=1)]
) -> str:
    """Resolve a ticket. The user is asked how, and of a duplicate for the original."""
    await ctx.step("load", work)
    message = f"Ticket {ticket} is about a negative total. How was it resolved?"
    resolution: str = (await ctx.elicit("resolution", message, Resolution)).resolution
    if resolution == "Duplicate":
        asked = await ctx.elicit("duplicate_of", "Which ticket is the original?", Original)
        resolution = f"a duplicate of {asked.original}"
    await ctx.step("save", work)
    return f"Ticket {ticket} is resolved as {resolution}."


@tool(title="Refund an order", annotations=WRITES, answer_within=10 * 60)
async def refund_order(ctx: Context, order: Order) -> str:
    """Refund an order, after the user has confirmed the amount."""
    await ctx.step("load", work)
    answer = await ctx.elicit("confirm", f"Refund 29.90 EUR for order {order}?", Refund)
    if not answer.refund:
        return f"Order {order} stays as it is."
    await ctx.step("refund", work)
    return f"29.90 EUR are refunded for order {order}."


@tool(title="Summarize a thread", annotations=READ_ONLY)
async def summarize_thread(
    ticket: Annotated[int, Field(description="Number of the ticket.")],
) -> str:
    """Sum the messages of a ticket up."""
    await asyncio.sleep(WORK_SECONDS)
    return f"Ticket {ticket}: the total of a cart with 100 items is negative."


@tool(title="Deploy a service", annotations=WRITES, answer_within=10 * 60)
async def deploy(
    ctx: Context,
    service: Annotated[str, Field(min_length=1, max_length=40)],
    version: Annotated[str, Field(min_length=1, max_length=20)],
) -> str:
    """Deploy a version of a service, after the user has confirmed it."""
    answer = await ctx.elicit("confirm", f"Deploy {service} {version}?", Approval)
    if not answer.deploy:
        return f"{service} stays as it is."
    await ctx.step("roll out", work)
    return f"{service} {version} is deployed."


@tool(title="Status of a service", annotations=READ_ONLY)
async def service_status(service: str) -> str:
    """Say how a service is."""
    if service == "billing":
        raise ToolError("billing does not answer.")
    return f"{service} is well."


@tool(title="Build a report", annotations=READ_ONLY)
async def build_report(month: str) -> str:
    """Build the report of a month."""
    await asyncio.sleep(WORK_SECONDS)
    return f"The report of {month} is built."


async def work() -> None:
    """A step that takes a moment."""
    await asyncio.sleep(WORK_SECONDS)
