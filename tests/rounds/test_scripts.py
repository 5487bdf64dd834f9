"""Script tools, made through the catalogue and called by clients of both eras."""

from textwrap import dedent
from typing import Any
from uuid import UUID

import pytest

from mcphost.audit.models import Entry
from mcphost.catalogue import services
from mcphost.catalogue.errors import Invalid
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.serving.database import in_database
from tests.cast import ACTOR, Cast
from tests.mcp import ask
from tests.rounds.legs import asked, calling, done, failed, state_of
from tests.serving.legacy.callers import Caller, accept
from tests.serving.tasks.following import Follower

pytestmark = pytest.mark.django_db(transaction=True)

ORDER = """
    def order(items: list[str]) -> dict:
        \"\"\"Order things.\"\"\"
        basket = []
        for number, item in enumerate(items):
            answer = elicit(f"count-{number}", f"How many of {item}?", {"count": int})
            basket.append([item, answer["count"]])
        return {"basket": basket}
"""
ITEMS = ["ink", "paper"]
LARGEST_STATE = 8 * 1024


def fields(code: str, name: str = "order") -> PrimitiveFields:
    return PrimitiveFields(name, {"code": dedent(code)}, kind="script")


async def publish(cast: Cast, code: str = ORDER) -> UUID:
    def create() -> UUID:
        return services.publish(services.create(cast.acme.id, fields(code), ACTOR).id, ACTOR).id

    return await in_database(create)


async def change(script: UUID, code: str) -> None:
    def update() -> None:
        services.update(script, fields(code), ACTOR)
        services.publish(script, ACTOR)

    await in_database(update)


async def test_a_script_is_listed_with_its_schemas(asking: Cast) -> None:
    await publish(asking)
    listed = (await ask("acme", "tools/list", token=asking.owner.mcp_token)).result["tools"]
    (tool,) = [one for one in listed if one["name"] == "order"]
    assert tool["description"] == "Order things."
    assert tool["inputSchema"]["required"] == ["items"]
    assert tool["outputSchema"] == {"type": "object"}


async def test_a_stateless_client_answers_in_the_middle_of_a_loop(asking: Cast) -> None:
    await publish(asking)
    asker = calling(asking.owner.mcp_token, "order", items=ITEMS)
    first = await asker.leg()
    assert asked(first)["count-0"]["params"]["message"] == "How many of ink?"
    assert len(state_of(first)) < LARGEST_STATE
    second = await asker.leg(state_of(first), {"count-0": accept(count=2)})
    assert list(asked(second)) == ["count-1"]
    last = await asker.leg(state_of(second), {"count-1": accept(count=5)})
    assert done(last) == '{"basket":[["ink",2],["paper",5]]}'
    assert last.result["structuredContent"] == {"basket": [["ink", 2], ["paper", 5]]}


async def test_the_same_answer_again_gets_the_same_question(asking: Cast) -> None:
    await publish(asking)
    asker = calling(asking.owner.mcp_token, "order", items=ITEMS)
    first = await asker.leg()
    answers = {"count-0": accept(count=2)}
    again = [await asker.leg(state_of(first), answers) for _ in range(2)]
    for reply in again:
        last = await asker.leg(state_of(reply), {"count-1": accept(count=5)})
        assert done(last) == '{"basket":[["ink",2],["paper",5]]}'


async def test_a_client_of_a_session_is_asked_on_its_stream(asking: Cast) -> None:
    await publish(asking)
    caller = await Caller.at(asking)
    shown = await caller.streamed("order", items=ITEMS)
    (question,) = await shown.asked()
    assert question["params"]["message"] == "How many of ink?"
    await caller.answer(question, accept(count=2))
    await caller.answer((await shown.asked(2))[1], accept(count=5))
    result: dict[str, Any] = (await shown.whole())[-1]["result"]
    assert result["structuredContent"] == {"basket": [["ink", 2], ["paper", 5]]}


async def test_a_script_published_anew_in_between_asks_nothing_again(asking: Cast) -> None:
    script = await publish(asking)
    asker = calling(asking.owner.mcp_token, "order", items=ITEMS)
    first = await asker.leg()
    await change(script, ORDER.replace('{"basket": basket}', '{"new": basket}'))
    second = await asker.leg(state_of(first), {"count-0": accept(count=2)})
    assert list(asked(second)) == ["count-1"]
    last = await asker.leg(state_of(second), {"count-1": accept(count=5)})
    assert last.result["structuredContent"]["new"] == [["ink", 2], ["paper", 5]]


async def test_a_script_that_fails_says_nothing_of_its_inside(asking: Cast) -> None:
    await publish(asking, 'def order() -> str:\n """Fail."""\n raise ValueError("inner")')
    reply = await calling(asking.owner.mcp_token, "order").leg()
    assert "inner" not in failed(reply)
    found = await in_database(lambda: list(Entry.objects.filter(action="round.finished")))
    assert [entry.outcome for entry in found] == ["crashed"]


async def test_a_script_with_a_mistake_cannot_be_saved(asking: Cast) -> None:
    with pytest.raises(Invalid) as refused:
        await publish(asking, 'def order() -> int:\n """Order."""\n return nothing')
    assert refused.value.problems == {
        "config.code": ["Line 3, column 9: Name `nothing` used when not defined"]
    }


async def test_a_client_that_follows_tasks_gets_the_result_of_a_script_at_once(
    asking: Cast,
) -> None:
    await publish(asking, 'def order() -> str:\n """Order."""\n return "done"')
    follower = Follower(asking.owner.mcp_token)
    assert done(await follower.call("order")) == "done"
