"""Links of a call are the same in every round, and waiting at them does not use the tool's time
limit."""

from itertools import count

import pytest

from mcphost.runtime.memory import MemoryLinks
from mcphost.runtime.outcomes import Complete
from mcphost.sdk import Context, LinkRefusedError, SyncContext, tool
from mcphost.testing import in_memory, try_out

YES = {"page": {"action": "accept"}, "again": {"action": "accept"}}


class Fresh(MemoryLinks):
    """Links with a new address each time, like the real ones."""

    def __init__(self) -> None:
        super().__init__(done={"paid"})
        self._made = count()

    def page(self, key: str) -> str:
        return f"{super().page(key)}?{next(self._made)}"

    def callback(self, key: str) -> str:
        return f"{super().callback(key)}?{next(self._made)}"


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
async def test_a_link_is_the_same_in_every_round_and_each_key_has_its_own_link(
    function: object,
) -> None:
    ended = await try_out(function, answers=YES, ports=in_memory()._replace(links=Fresh()))  # type: ignore[arg-type]
    assert ended.asked == (("page",), ("again",))
    assert isinstance(ended.outcome, Complete)
    first, other, last = ended.outcome.result["structuredContent"]
    assert first == last
    assert first.partition("?")[0] != other.partition("?")[0]


async def test_a_callback_is_the_same_in_every_round_and_has_its_own_address() -> None:
    @tool
    async def order(ctx: Context) -> list[str]:
        seen = [ctx.callback("shipped"), ctx.done_url("signed")]
        await ctx.ask_url("page", "Sign here.", seen[1])
        return [*seen, ctx.callback("shipped")]

    ended = await try_out(order, answers=YES, ports=in_memory()._replace(links=Fresh()))
    assert isinstance(ended.outcome, Complete)
    first, page, last = ended.outcome.result["structuredContent"]
    assert first == last
    assert first.startswith("https://mcphost.example/callback/shipped")
    assert page.startswith("https://mcphost.example/done/signed")


@pytest.mark.parametrize("page_first", [True, False])
async def test_a_link_key_belongs_to_a_page_or_a_callback(*, page_first: bool):
    @tool
    async def mixes(ctx: Context) -> str:
        makes = [ctx.done_url, ctx.callback]
        first, second = makes if page_first else reversed(makes)
        first("paid")
        with pytest.raises(LinkRefusedError, match=r"has a (page|callback) already"):
            second("paid")
        return "refused"

    assert isinstance((await try_out(mixes)).outcome, Complete)
