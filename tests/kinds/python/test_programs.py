"""Any program of steps and questions ends with the same result as without interruptions."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mcphost.runtime.outcomes import Complete, Deferred, InputRequired, Yielded
from mcphost.sdk import Context
from tests.kinds.rounds import ports
from tests.kinds.rounds_with_client import Driven, Name, accept
from tests.runtime.rounds import Ticking

MOST_ROUNDS = 100


@dataclass(frozen=True)
class Step:
    """A step with one of few names and arguments, so that the same pair occurs again."""

    name: str
    argument: int
    turns: int


@dataclass(frozen=True)
class Ask:
    turns: int


@dataclass(frozen=True)
class BecomeTask:
    turns: int


@dataclass(frozen=True)
class Draw:
    what: str


@dataclass(frozen=True)
class Several:
    """Parts that run in sequence or concurrently."""

    how: str
    parts: tuple[Any, ...]


LEAVES = st.one_of(
    st.builds(Step, st.sampled_from("ab"), st.integers(0, 1), st.integers(0, 3)),
    st.builds(Ask, st.integers(0, 3)),
    st.builds(BecomeTask, st.integers(0, 3)),
    st.builds(Draw, st.sampled_from(["now", "uuid", "random"])),
)
PROGRAMS = st.recursive(
    LEAVES,
    lambda inner: st.builds(
        Several,
        st.sampled_from(["sequence", "gather", "group"]),
        st.lists(inner, min_size=1, max_size=4).map(tuple),
    ),
    max_leaves=12,
)


@dataclass
class Run:
    """One call of a program: the steps that ran and the values that were drawn, in all of its
    rounds."""

    ran: Counter[str] = field(default_factory=Counter)
    drawn: dict[str, set[str]] = field(default_factory=dict)

    async def play(self, ctx: Context, part: Any, path: str) -> Any:
        match part:
            case Step(name, argument, turns):
                return await ctx.step(name, self._step, argument, turns)
            case Ask(turns):
                await pause(turns)
                return (await ctx.elicit(path, "What?", Name)).name
            case BecomeTask(turns):
                await pause(turns)
                await ctx.become_task()
                return "task"
            case Draw(what):
                self.drawn.setdefault(path, set()).add(drawn(ctx, what))
                return what
            case Several("sequence", parts):
                return [await self.play(ctx, one, f"{path}.{n}") for n, one in enumerate(parts)]
            case Several(how, parts):
                works = [self.play(ctx, one, f"{path}.{n}") for n, one in enumerate(parts)]
                return await (in_group if how == "group" else in_gather)(works)

    async def _step(self, argument: int, turns: int, idempotency_key: str) -> int:
        self.ran[idempotency_key] += 1
        await pause(turns)
        return argument * 10


async def pause(turns: int) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


def drawn(ctx: Context, what: str) -> str:
    match what:
        case "now":
            return str(ctx.now())
        case "uuid":
            return str(ctx.uuid())
        case _:
            return str(ctx.random().random())


async def in_group(works: list[Any]) -> list[Any]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work) for work in works]
    return [task.result() for task in tasks]


async def in_gather(works: list[Any]) -> list[Any]:
    return list(await asyncio.gather(*works))


def expected(part: Any, path: str = "0") -> Any:
    """Return the result of the program without interruptions: the answer to a question is its key."""
    match part:
        case Step():
            return part.argument * 10
        case Ask():
            return path
        case BecomeTask():
            return "task"
        case Draw():
            return part.what
        case Several():
            return [expected(one, f"{path}.{n}") for n, one in enumerate(part.parts)]


def steps_of(part: Any) -> int:
    match part:
        case Several():
            return sum(map(steps_of, part.parts))
        case _:
            return isinstance(part, Step)


@settings(max_examples=200, deadline=None)
@given(
    program=PROGRAMS,
    random=st.randoms(use_true_random=False),
    leaves=st.booleans(),
    defers=st.booleans(),
)
def test_a_program_driven_by_rounds_ends_like_an_uninterrupted_one(program, random, leaves, defers):
    asyncio.run(drive(program, random, leaves, defers))


async def drive(program: Any, random: Any, leaves: bool, defers: bool) -> None:
    """Answer some of the questions of each round, early or late, until the program is finished."""
    run = Run()
    outside = ports()._replace(
        clock=Ticking(),
        reason_to_move=lambda: leaves and bool(random.getrandbits(1)),
        may_defer=lambda: defers,
    )

    async def function(ctx: Context) -> dict[str, Any]:
        return {"made": await run.play(ctx, program, "0")}

    driven = Driven(function, outside=outside)
    outcome = await driven.advance()
    for _ in range(MOST_ROUNDS):
        match outcome:
            case InputRequired(requests):
                keys = [one.key for one in requests]
                chosen = random.sample(keys, random.randint(1, len(keys)))
                outcome = await driven.advance(**{key: accept(name=key) for key in chosen})
            case Yielded() | Deferred():
                outcome = await driven.advance()
            case _:
                break
    assert isinstance(outcome, Complete), outcome
    assert outcome.result["structuredContent"] == {"made": expected(program)}
    assert run.ran == dict.fromkeys(run.ran, 1)
    assert len(run.ran) == steps_of(program)
    assert all(len(values) == 1 for values in run.drawn.values())
    assert len({str(values) for values in run.drawn.values()}) == len(run.drawn)
