"""Time and random values are the same in every round, whichever task draws them."""

import asyncio
import json
from collections.abc import Callable, Collection, Mapping
from typing import Any
from urllib.parse import quote

import pytest

from mcphost.runtime.deadlines import Deadline
from mcphost.runtime.journal import EMPTY, Answer, Journal
from mcphost.runtime.ports import LinkRefusedError
from mcphost.runtime.questions import Question
from mcphost.runtime.rounds import Round
from mcphost.runtime.started_coroutine import StartedCoroutine
from tests.kinds.rounds import a_call, ports
from tests.runtime.rounds import VERSION, Ticking, a_round, ended, required

Drawn = list[Any]


async def one_after_another(round: Round) -> Drawn:
    ctx = round.recording
    return [draw() for _ in range(2) for draw in (ctx.now, ctx.uuid, lambda: ctx.random().random())]


async def side_by_side(round: Round) -> Drawn:
    """Draw in several tasks, in a different order in every round."""
    ctx, order = round.recording, iter(round.thread_limit.program)

    async def draw(turns: int) -> Drawn:
        for _ in range(turns):
            await asyncio.sleep(0)
        return [ctx.now(), ctx.uuid(), ctx.random().random()]

    tasks = [asyncio.create_task(draw(int(next(order)))) for _ in range(3)]
    return [what for task in tasks for what in await task]


async def in_tasks_of_tasks(round: Round) -> Drawn:
    ctx = round.recording

    async def inner() -> Drawn:
        return [ctx.uuid()]

    async def outer() -> Drawn:
        return [ctx.uuid(), *await asyncio.create_task(inner())]

    return [*await asyncio.create_task(outer()), *await asyncio.create_task(outer())]


async def in_threads(round: Round) -> Drawn:
    return [await asyncio.to_thread(round.recording.uuid), round.recording.uuid()]


async def after_steps(round: Round) -> Drawn:
    """Draw after a step: the draws and tasks of the step do not change later ones when it is not
    run again."""

    async def step() -> str:
        await asyncio.create_task(asyncio.sleep(0))
        return str(round.recording.uuid())

    async def task() -> Any:
        return round.recording.uuid()

    stepped = await round.step("draw", step, (), {})
    return [stepped, round.recording.uuid(), await asyncio.create_task(task())]


async def drawn(
    draw: Callable[[Round], Any], journal: Journal, order: str
) -> tuple[Drawn, Journal]:
    """Draw in one round; return the values and the journal of the round."""
    outside = ports()._replace(clock=Ticking())
    with a_round(journal, outside) as round:
        round.thread_limit = round.thread_limit._replace(program=order)
        values = await draw(round)
        return values, await ended(round)


@pytest.mark.parametrize(
    "draw", [one_after_another, side_by_side, in_tasks_of_tasks, in_threads, after_steps]
)
async def test_a_later_round_draws_the_same_values(draw: Callable[[Round], Any]) -> None:
    first, journal = await drawn(draw, EMPTY, "021")
    assert json.loads(json.dumps(dict(journal.recorded))) == journal.recorded
    second, again = await drawn(draw, journal, "201")
    assert second == first
    assert again.recorded == journal.recorded
    assert len(set(map(str, first))) == len(first)


async def test_two_calls_draw_different_values() -> None:
    first, _ = await drawn(one_after_another, EMPTY, "")
    second, _ = await drawn(one_after_another, EMPTY, "")
    assert first[1] != second[1]


async def test_values_drawn_while_unwinding_are_distinct_and_not_recorded() -> None:
    with a_round(outside=ports()._replace(clock=Ticking())) as round:
        await ended(round)
        ctx = round.recording
        drawn_late = [ctx.now(), ctx.now(), ctx.uuid(), ctx.uuid(), ctx.random().random()]
        assert len(set(map(str, drawn_late))) == 5
        assert required(round).journal.recorded == {}


class CountedLinks:
    """Links that make a new address each time, and note what is waited for."""

    def __init__(self) -> None:
        self.made = 0
        self.waited: list[tuple[str, float, list[str]]] = []

    def page(self, key: str) -> str:
        self.made += 1
        return f"https://host.example/page/{key}/{self.made}"

    def callback(self, key: str) -> str:
        self.made += 1
        return f"https://host.example/callback/{key}/{self.made}"

    async def wait(self, key: str, seconds: float, pages: Collection[str]) -> bool:
        self.waited.append((key, seconds, list(pages)))
        return key == "paid" and len(self.waited) == 1


def linked(links: CountedLinks) -> Any:
    return ports()._replace(links=links)


async def test_the_address_of_a_link_is_the_same_in_every_round() -> None:
    links = CountedLinks()
    with a_round(outside=linked(links)) as round:
        ctx = round.recording
        first = [ctx.page("paid"), ctx.callback("shipped"), ctx.page("paid")]
        journal = await ended(round)
    assert first[0] == first[2] != first[1]
    with a_round(journal, linked(links)) as round:
        ctx = round.recording
        assert [ctx.callback("shipped"), ctx.page("paid")] == [first[1], first[0]]
        assert links.made == 2


async def test_a_link_key_belongs_to_a_page_or_to_a_callback() -> None:
    with a_round(outside=linked(CountedLinks())) as round:
        ctx = round.recording
        ctx.page("paid")
        with pytest.raises(LinkRefusedError, match="has a page already"):
            ctx.callback("paid")
        ctx.callback("shipped")
        with pytest.raises(LinkRefusedError, match="has a callback already"):
            ctx.page("shipped")


CALL = a_call(elicitation={"form": {}, "url": {}})._replace(version=VERSION)


def opening(key: str, url: str) -> Question[Any]:
    """Build a question whose user is sent to a page."""
    return Question(key, "elicitation/create", {"mode": "url", "url": url}, "elicitation.url", dict)


def consented(*questions: Question[Any], recorded: Mapping[str, Any] = EMPTY.recorded) -> Journal:
    answers = {one.key: (Answer(one.digest, VERSION, {}),) for one in questions}
    return Journal(answers, recorded, None)


@pytest.mark.parametrize("kind", ["page", "callback"])
async def test_a_wait_covers_the_pages_whose_urls_contain_its_link(kind: str) -> None:
    links = CountedLinks()
    with a_round(outside=linked(links)) as round:
        made = getattr(round.recording, kind)("paid")
        other = getattr(round.recording, kind)("other")
        recorded = (await ended(round)).recorded
    once = f"https://bank.example/pay?hook={quote(made, safe='')}"
    twice = f"https://short.example/?to={quote(once, safe='')}"
    pages = [opening("a", made), opening("b", once), opening("c", twice)]
    others = [opening("d", other), opening("paid", "https://bank.example/")]
    journal = consented(*pages, *others, recorded=recorded)
    with a_round(journal, linked(links), CALL) as round:
        for asked in (*pages, *others):
            await round.ask(asked)
        await round.wait_for("paid", 5)
    assert links.waited == [("paid", 5, [made, once, twice])]


async def test_a_wait_without_a_matching_url_covers_the_page_of_the_same_key() -> None:
    links, pages = (
        CountedLinks(),
        [opening(key, f"https://{key}.example/") for key in ("paid", "b")],
    )
    with a_round(consented(*pages), linked(links), CALL) as round:
        round.recording.callback("paid")
        for asked in pages:
            await round.ask(asked)
        await round.wait_for("paid", 5)
        await round.wait_for("lost", 5)
    assert links.waited == [("paid", 5, ["https://paid.example/"]), ("lost", 5, [])]


async def test_a_wait_receives_the_requested_pages_and_is_recorded() -> None:
    links = CountedLinks()
    with a_round(outside=linked(links), call=CALL) as round:
        page = round.recording.page("paid")
        round.recording.answer(opening("page", page))
        assert await round.wait_for("paid", 5) is True
        assert await round.wait_for("lost", 6) is False
        assert await round.wait_for("paid", 7) is False
        journal = await ended(round)
    assert links.waited == [("paid", 5, [page]), ("lost", 6, []), ("paid", 7, [page])]
    with a_round(journal, linked(links), CALL) as round:
        assert [await round.wait_for("paid", 5), await round.wait_for("paid", 7)] == [True, False]
    assert len(links.waited) == 3


async def test_a_wait_suspends_the_time_limit() -> None:
    limit = 0.05

    class SlowLinks(CountedLinks):
        async def wait(self, key: str, seconds: float, pages: Collection[str]) -> bool:
            await asyncio.sleep(4 * limit)
            return True

    with a_round(outside=ports()._replace(links=SlowLinks())) as round:
        both = asyncio.gather(round.wait_for("one", 1), round.wait_for("two", 1))
        round.deadline = Deadline(StartedCoroutine(wait_until(both)), limit)
        assert await round.deadline.run() == [True, True]


async def wait_until(done: "asyncio.Future[list[bool]]") -> list[bool]:
    return await done
