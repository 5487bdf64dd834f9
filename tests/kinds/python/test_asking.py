"""A function that asks continues in the next round as if it had waited for the answer."""

import asyncio

import pytest

from mcphost.runtime.outcomes import Failed, FailureKind, InputRequired
from mcphost.sdk import Context
from tests.kinds.rounds_with_client import CANCEL, DECLINE, Driven, Name, accept, asking_call


async def greet(ctx: Context) -> str:
    return (await ctx.elicit("who", "Who are you?", Name)).name


async def test_a_function_that_asks_sends_an_input_request() -> None:
    outcome = await Driven(greet).advance()
    assert isinstance(outcome, InputRequired)
    [request] = outcome.requests
    assert request.method == "elicitation/create"
    assert request.params["message"] == "Who are you?"
    assert request.digest


@pytest.mark.requirement("elicitation.actions")
async def test_declined_and_cancelled_input_requests_are_results() -> None:
    for answer, word in ((DECLINE, "declined"), (CANCEL, "dismissed")):
        driven = Driven(greet)
        await driven.asks()
        assert word in await driven.completes(who=answer)


async def test_concurrent_input_requests_are_sent_in_one_round() -> None:
    async def both(ctx: Context) -> str:
        first, second = await asyncio.gather(
            ctx.elicit("a", "First?", Name), ctx.elicit("b", "Second?", Name)
        )
        return first.name + second.name

    driven = Driven(both)
    assert await driven.asks() == ["a", "b"]
    assert await driven.asks(b=accept(name="B")) == ["a"]
    assert await driven.completes(a=accept(name="A")) == "AB"


@pytest.mark.requirement("mrtr.invalid")
async def test_an_invalid_response_is_requested_again_with_the_problem() -> None:
    driven = Driven(greet)
    await driven.asks()
    outcome = await driven.advance(who=accept(name=5))
    assert isinstance(outcome, InputRequired)
    assert "name" in outcome.invalid["who"]
    assert await driven.completes(who=accept(name="Ada")) == "Ada"


@pytest.mark.requirement("mrtr.undeclared")
async def test_a_client_without_elicitation_gets_the_missing_capability() -> None:
    outcome = await Driven(greet, asking_call(roots={})).advance()
    assert isinstance(outcome, Failed)
    assert outcome.error.kind is FailureKind.CAPABILITY_MISSING
    assert outcome.error.required == {"elicitation": {"form": {}}}
