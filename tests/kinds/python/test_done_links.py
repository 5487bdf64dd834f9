"""Links of a call: the same in every round, waited for without using up the time of the tool."""

from itertools import count

import pytest

from mcphost.kinds.python.trying import in_memory, try_out
from mcphost.runtime.memory import MemoryLinks
from mcphost.runtime.outcomes import Complete
from mcphost.sdk import Context, SyncContext, tool

YES = {"page": {"action": "accept"}, "again": {"action": "accept"}}


class Fresh(MemoryLinks):
    """Like real ones: another address each time."""

    def __init__(self) -> None:
        super().__init__(done={"paid"})
        self._made = count()

    def url(self, key: str) -> str:
        return f"{super().url(key)}?{next(self._made)}"


@tool
async def pay(ctx: Context) -> list[str]:
    seen = [ctx.done_url("paid"), ctx.done_url("other")]
    await ctx.ask_url("page", "Pay here.", seen[0])
    await ctx.ask_url("again", "And here.", ctx.done_url("paid"))
    return [*seen, ctx.done_url("paid")]


@tool
def pay_blocking(ctx: SyncContext) -> list[str]:
    seen = [ctx.done_url("paid"), ctx.done_url("other")]
    ctx.ask_url("page", "Pay here.", seen[0])
    ctx.ask_url("again", "And here.", ctx.done_url("paid"))
    return [*seen, ctx.done_url("paid")]


@pytest.mark.parametrize("function", [pay, pay_blocking])
async def test_a_link_is_the_same_in_every_round_and_keys_have_their_own(function: object) -> None:
    ended = await try_out(function, answers=YES, ports=in_memory()._replace(links=Fresh()))  # type: ignore[arg-type]
    assert ended.asked == (("page",), ("again",))
    assert isinstance(ended.outcome, Complete)
    first, other, last = ended.outcome.result["structuredContent"]
    assert first == last
    assert first.partition("?")[0] != other.partition("?")[0]


async def test_who_goes_on_after_the_end_of_a_round_gets_a_link_all_the_same() -> None:
    @tool
    async def stubborn(ctx: Context) -> str:
        try:
            await ctx.ask_url("page", "Pay here.", "https://bank.example/")
        except BaseException:  # noqa: BLE001 - what nobody should do
            return ctx.done_url("paid")
        return "never"

    ended = await try_out(stubborn)
    assert ended.asked == (("page",),)
