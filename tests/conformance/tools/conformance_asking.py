"""What the official MCP conformance suite expects of tools and prompts that ask (SEP-2322).

Names, texts, keys and schemas are the suite's, to the letter.
"""

import asyncio
from typing import Annotated, Any, Literal

from pydantic import Field

from mcphost.sdk import CapabilityMissingError, Context, Form, Text, ToolAnnotations, prompt, tool

READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)

ENUMS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {
            "type": "string",
            "oneOf": [
                {"const": "value1", "title": "First Option"},
                {"const": "value2", "title": "Second Option"},
                {"const": "value3", "title": "Third Option"},
            ],
        },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {
            "type": "array",
            "items": {"type": "string", "enum": ["option1", "option2", "option3"]},
        },
        "titledMulti": {
            "type": "array",
            "items": {
                "anyOf": [
                    {"const": "value1", "title": "First Choice"},
                    {"const": "value2", "title": "Second Choice"},
                    {"const": "value3", "title": "Third Choice"},
                ]
            },
        },
    },
    "required": [],
}


class Name(Form):
    name: str


class Color(Form):
    color: str


class Confirmation(Form):
    ok: bool


class Reason(Form):
    context: str


class User(Form):
    username: Annotated[str, Field(description="User's response")]
    email: Annotated[str, Field(description="User's email address")]


class Defaults(Form):
    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


# One scenario answers before it was asked.
@tool(annotations=READ_ONLY, unasked=True)
async def test_input_required_result_elicitation(ctx: Context) -> str:
    """Asks for a name."""
    return await _hello(ctx)


@tool(annotations=READ_ONLY)
async def test_input_required_result_sampling(ctx: Context) -> str:
    """Has the client's model answer a question."""
    return await _capital(ctx)


@tool(annotations=READ_ONLY)
async def test_input_required_result_list_roots(ctx: Context) -> str:
    """Asks for the client's roots."""
    roots = await ctx.list_roots("client_roots")
    return f"Roots: {', '.join(str(root.uri) for root in roots)}"


@tool(annotations=READ_ONLY)
async def test_input_required_result_request_state(ctx: Context) -> str:
    """Asks for a confirmation, and goes on from the state that comes back with it."""
    await ctx.elicit("confirm", "Please confirm", Confirmation)
    return "state-ok"


@tool(annotations=READ_ONLY)
async def test_input_required_result_multiple_inputs(ctx: Context) -> str:
    """Asks for three things side by side."""
    user, greeting, roots = await asyncio.gather(
        ctx.elicit("user_name", "What is your name?", Name),
        ctx.sample("greeting", "Generate a greeting", max_tokens=50),
        ctx.list_roots("client_roots"),
    )
    return f"{_text(greeting.content)} {user.name} has {len(roots)} roots."


# Not read-only, so that the rounds which take in answers are claimed.
@tool(annotations=ToolAnnotations(destructive_hint=False, open_world_hint=False))
async def test_input_required_result_multi_round(ctx: Context) -> str:
    """Asks one thing after the other."""
    first = await ctx.elicit("step1", "Step 1: What is your name?", Name)
    second = await ctx.elicit("step2", "Step 2: What is your favorite color?", Color)
    return f"{first.name} likes {second.color}."


@tool(annotations=READ_ONLY)
async def test_input_required_result_tampered_state(ctx: Context) -> str:
    """Asks for a confirmation; the state that comes back with it must be the one that was given."""
    await ctx.elicit("confirm", "Please confirm", Confirmation)
    return "state-ok"


@tool(annotations=READ_ONLY)
async def test_input_required_result_capabilities(ctx: Context) -> str:
    """Asks for what the client can do, and for nothing else."""
    questions = []
    if _can(ctx, "elicitation.form"):
        questions.append(_hello(ctx))
    if _can(ctx, "sampling"):
        questions.append(_capital(ctx))
    return " ".join(await asyncio.gather(*questions))


@prompt
async def test_input_required_result_prompt(ctx: Context) -> str:
    """Asks what the prompt is for."""
    reason = await ctx.elicit("user_context", "What context should the prompt use?", Reason)
    return f"Use this context: {reason.context}"


@tool(annotations=READ_ONLY)
async def test_sampling(ctx: Context, prompt: str) -> str:
    """Has the client's model answer a prompt."""
    said = await ctx.sample("prompt", prompt, max_tokens=100)
    return f"LLM response: {_text(said.content)}"


@tool(annotations=READ_ONLY)
async def test_elicitation(ctx: Context, message: str) -> str:
    """Asks for a name and an address."""
    answer = await ctx.ask_form("user", message, User)
    return f"User response: {answer.action} {answer.content}"


@tool(annotations=READ_ONLY)
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Asks with a default in every field."""
    answer = await ctx.ask_form("defaults", "Please review these defaults", Defaults)
    return f"Elicitation completed: {answer.action} {answer.content}"


@tool(annotations=READ_ONLY)
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Asks with every way of offering choices."""
    answer = await ctx.ask_form("enums", "Please choose", ENUMS_SCHEMA)
    return f"Elicitation completed: {answer.action} {answer.content}"


async def _hello(ctx: Context) -> str:
    return f"Hello, {(await ctx.elicit('user_name', 'What is your name?', Name)).name}!"


async def _capital(ctx: Context) -> str:
    said = await ctx.sample("capital_question", "What is the capital of France?", max_tokens=100)
    return _text(said.content)


def _can(ctx: Context, capability: str) -> bool:
    try:
        ctx.require(capability)
    except CapabilityMissingError:
        return False
    return True


def _text(content: Any) -> str:
    return content.text if isinstance(content, Text) else "not a text"
