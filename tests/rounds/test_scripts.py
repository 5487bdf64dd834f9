"""Script tools, made through the catalogue and called by stateless clients."""

from textwrap import dedent
from uuid import UUID

import pytest

from mcphost.audit.models import Entry
from mcphost.catalogue import services
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.serving.database import in_database
from tests.cast import ACTOR, Cast
from tests.mcp import ask
from tests.rounds.legs import accept, asked, calling, done, failed, state_of

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


async def test_a_script_is_listed_and_a_client_answers_in_the_middle_of_its_loop(
    asking: Cast,
) -> None:
    await publish(asking)
    listed = (await ask("acme", "tools/list", token=asking.owner.mcp_token)).result["tools"]
    (tool,) = [one for one in listed if one["name"] == "order"]
    assert tool["description"] == "Order things."
    assert tool["inputSchema"]["required"] == ["items"]
    assert tool["outputSchema"] == {"type": "object"}
    asker = calling(asking.owner.mcp_token, "order", items=ITEMS)
    first = await asker.leg()
    assert asked(first)["count-0"]["params"]["message"] == "How many of ink?"
    assert len(state_of(first)) < LARGEST_STATE
    for _ in range(2):  # the same answer again gets the same question
        second = await asker.leg(state_of(first), {"count-0": accept(count=2)})
        assert list(asked(second)) == ["count-1"]
        last = await asker.leg(state_of(second), {"count-1": accept(count=5)})
        assert done(last) == '{"basket":[["ink",2],["paper",5]]}'
        assert last.result["structuredContent"] == {"basket": [["ink", 2], ["paper", 5]]}


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
