"""A step runs once, is identified by its name and arguments, and returns what was recorded."""

import asyncio
import dataclasses
import functools
import subprocess
import sys
import traceback
from collections.abc import Awaitable, Callable
from datetime import date
from functools import reduce
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import BaseModel, Field

from mcphost.runtime.journal import EMPTY, Journal
from mcphost.runtime.rounds import Round
from mcphost.runtime.steps import MisusedError, Steps, shape_of
from tests.kinds.rounds import ports
from tests.runtime.rounds import a_round, ended, question, required, unwinds, yielded


class Item(BaseModel):
    number: int
    due: date = Field(default=date(2026, 1, 1), alias="dueDate")


@dataclasses.dataclass
class Point:
    x: int
    y: tuple[int, ...] = ()


Play = Callable[[Round], Any]


async def rounds(play: Play, count: int = 2) -> list[Any]:
    """Return the results of `play` in several rounds, each with the journal of the previous one."""
    made, journal = [], EMPTY
    for _ in range(count):
        with a_round(journal) as round:
            made.append(await play(round))
            journal = await ended(round)
    return made


async def step(round: Round, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return await round.step("do", function, args, kwargs)


class Counted:
    """A step's function that counts its runs and records its keys."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    async def run(self, *what: Any, idempotency_key: str) -> int:
        self.keys.append(idempotency_key)
        return len(self.keys)


async def test_a_repeated_step_is_a_new_occurrence_with_its_own_key() -> None:
    counted = Counted()

    async def play(round: Round) -> list[int]:
        return [await step(round, counted.run, "a") for _ in range(3)]

    assert await rounds(play) == [[1, 2, 3], [1, 2, 3]]
    assert len(set(counted.keys)) == 3
    assert all(UUID(key) for key in counted.keys)


async def test_a_step_with_another_name_or_arguments_is_a_different_step() -> None:
    counted = Counted()

    async def play(round: Round) -> list[int]:
        return [
            await step(round, counted.run, "a"),
            await step(round, counted.run, "b"),
            await round.step("other", counted.run, ("a",), {}),
        ]

    assert await rounds(play) == [[1, 2, 3], [1, 2, 3]]


async def test_a_step_that_raised_is_retried_with_the_same_key() -> None:
    keys: list[str] = []

    async def flaky(idempotency_key: str) -> str:
        keys.append(idempotency_key)
        if len(keys) == 1:
            raise ConnectionError
        return "done"

    async def play(round: Round) -> str:
        try:
            return str(await step(round, flaky))
        except ConnectionError:
            return str(await step(round, flaky))

    assert await rounds(play) == ["done", "done"]
    assert len(keys) == 2
    assert len(set(keys)) == 1


async def test_the_idempotency_key_differs_between_calls_and_stays_the_same_in_later_rounds() -> (
    None
):
    counted = Counted()
    with a_round() as round:
        await step(round, counted.run)
        again = Round(round.call._replace(round=2), EMPTY, ports())
        await step(again, counted.run)
    with a_round() as round:
        await step(round, counted.run)
    first, second, other = counted.keys
    assert first == second != other


def plain(a: int, idempotency_key: str = "") -> str:
    return idempotency_key


@functools.wraps(plain)
def wrapped(*args: Any, **kwargs: Any) -> str:
    return plain(*args, **kwargs)


@pytest.mark.parametrize("function", [plain, wrapped, functools.partial(plain, a=1)])
async def test_the_idempotency_key_is_passed_through_wrappers(function: Callable[..., str]) -> None:
    with a_round() as round:
        args = () if isinstance(function, functools.partial) else (1,)
        assert UUID(await step(round, function, *args))


async def test_a_function_without_a_signature_gets_no_key() -> None:
    assert not shape_of(type, "odd").takes_key
    with a_round() as round:
        assert await step(round, max, 1, 2) == 2


async def test_a_plain_function_of_a_step_runs_in_a_thread_of_the_tool() -> None:
    def blocking() -> str:
        with pytest.raises(RuntimeError):
            asyncio.get_running_loop()
        return "done"

    with a_round() as round:
        assert await step(round, blocking) == "done"
        assert await step(round, lambda: Counted().run(idempotency_key="x")) == 1


def returning(annotation: Any, value: Any) -> Callable[[], Any]:
    async def function() -> Any:
        return value

    function.__annotations__["return"] = annotation
    return function


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Item, Item(number=1, dueDate=date(2026, 2, 3))),
        (list[Item], [Item(number=1)]),
        (Point, Point(1, (2, 3))),
        (Annotated[int, Field(gt=0), {"cannot": "be looked up"}], 5),
        (set[int], {1, 2}),
        (None, None),
        ("int | None", None),
    ],
)
async def test_a_result_has_the_annotated_type_in_every_round(annotation: Any, value: Any):
    function = returning(annotation, value)
    assert await rounds(lambda round: step(round, function)) == [value, value]


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, "five"),
        (Any, object()),
        (Any, 2**70),
        (float, float("nan")),
    ],
)
async def test_a_result_that_cannot_be_recorded_is_an_error_of_the_author(
    annotation: Any, value: Any
):
    with (
        a_round() as round,
        pytest.raises(MisusedError, match="result of step 'do' cannot be recorded"),
    ):
        await step(round, returning(annotation, value))


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]


CANARY = "canary-of-a-service"
Pet = Annotated[Cat | Dog, Field(discriminator="kind")]


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, CANARY),
        (Item, {"number": CANARY}),
        (list[Point], [{"x": CANARY}]),
        (Literal["a", "b"], CANARY),
        (Pet, {"kind": CANARY}),
        (Pet, {"kind": "cat", "lives": CANARY}),
        (dict[str, Any], {"deep": reduce(lambda inner, _: [inner], range(220), CANARY)}),
        (Any, {"deep": reduce(lambda inner, _: [inner], range(300), CANARY)}),
        (Any, [CANARY, 2**70]),
        (str, b"\xff" + CANARY.encode()),
    ],
)
async def test_an_error_about_a_result_does_not_quote_it(annotation: Any, value: Any) -> None:
    """Neither does what caused it, which is logged beside it; recorded or read back."""
    returned = iter([returning(Any, value), returning(annotation, value)])
    with a_round() as round, pytest.raises(MisusedError) as first:
        await step(round, returning(annotation, value))
    assert CANARY not in "".join(traceback.format_exception(first.value))
    try:
        await rounds(lambda round: step(round, next(returned)))
    except MisusedError as second:
        assert CANARY not in "".join(traceback.format_exception(second))


async def test_unpaired_surrogates_in_a_result_are_replaced() -> None:
    with a_round() as round:
        assert await step(round, returning(Any, {"text": ["a\ud83d"]})) == {"text": ["a\ufffd"]}
    with a_round() as round:
        assert await step(round, returning(str, "a\ud83d")) == "a\ufffd"


async def test_an_error_about_arguments_does_not_quote_them() -> None:
    for argument in ([CANARY, object()], [CANARY, 2**70], {CANARY: "\ud800"}):
        with a_round() as round, pytest.raises(MisusedError) as caught:
            await step(round, returning(None, None), argument)
        assert CANARY not in "".join(traceback.format_exception(caught.value))


async def test_a_recorded_result_of_another_type_than_annotated_is_an_error() -> None:
    returned = iter([returning(str, "five"), returning(int, 5)])
    with pytest.raises(MisusedError, match="the recorded result of step 'do' is not what"):
        await rounds(lambda round: step(round, next(returned)))


async def test_an_unreadable_return_annotation_is_an_error_of_the_author() -> None:
    for annotation in ("NoSuchThing", 5):
        with (
            a_round() as round,
            pytest.raises(MisusedError, match="return annotation of step 'do'"),
        ):
            await step(round, returning(annotation, None))


@pytest.mark.parametrize("argument", [object(), 2**70, print])
async def test_arguments_that_are_not_data_are_an_error_of_the_author(argument: Any) -> None:
    with a_round() as round, pytest.raises(MisusedError, match="cannot be written as JSON"):
        await step(round, returning(None, None), argument)


@pytest.mark.parametrize("name", ["", "x" * 101, 5])
async def test_the_length_of_a_step_name_is_limited(name: Any) -> None:
    with a_round() as round, pytest.raises(MisusedError, match="the name of a step is a text"):
        await round.step(name, returning(None, None), (), {})


def test_steps_are_distinguished_by_type_and_value_of_their_arguments() -> None:
    different = [
        1,
        "1",
        None,
        [1],
        {2},
        {2, 3},
        {"a": 1},
        {"a": "1"},
        b"\xff",
        Item(number=1),
        Point(1),
    ]
    pairs = [Steps().take("do", (one,), {}).pair for one in different]
    assert len(set(pairs)) == len(pairs)
    assert Steps().take("do", ({2, 1},), {}) == Steps().take("do", (frozenset([1, 2]),), {})
    assert Steps().take("do", (), {"a": 1, "b": 2}) == Steps().take("do", (), {"b": 2, "a": 1})


SETS = """
from mcphost.runtime.steps import Steps
print(Steps().take("do", ({"a", "b", "c", "d"}, {1: frozenset({"x", "y"})}), {}).id)
"""


def test_sets_among_step_arguments_are_written_equally_in_every_process() -> None:
    ids = {
        subprocess.run(
            [sys.executable, "-c", SETS],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(ids) == 1


async def test_inside_a_step_no_input_request_step_or_wait_is_allowed() -> None:
    with a_round() as round:
        uses: list[Callable[[], Any]] = [
            lambda: round.ask(question("a")),
            lambda: round.step("inner", returning(None, None), (), {}),
            lambda: round.wait_for("a", 1),
            lambda: asyncio.create_task(round.ask(question("a"))),
        ]

        async def tries(use: Callable[[], Any]) -> str:
            with pytest.raises(MisusedError, match="inside another step") as caught:
                await use()
            return str(caught.value)

        told = [await round.step("outer", functools.partial(tries, use), (), {}) for use in uses]
        assert "the question 'a' is asked inside another step (step outer" in told[0]
        assert "the step 'inner' is begun" in told[1]


async def test_a_cancelled_step_is_not_recorded() -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    with a_round() as round:
        task = asyncio.create_task(step(round, hang))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert (await ended(round)).recorded == {}


class Leaving:
    """The port `reason_to_move`, with a reason while `leaves` is true."""

    def __init__(self) -> None:
        self.leaves = True
        self.asked = 0

    def __call__(self) -> str:
        self.asked += 1
        return "lag" if self.leaves else ""


async def test_a_round_of_a_draining_process_yields_after_a_new_step() -> None:
    counted, leaving = Counted(), Leaving()
    outside = ports()._replace(reason_to_move=leaving)
    with a_round(outside=outside) as round:
        await unwinds(step(round, counted.run))
        journal, reason = yielded(round).journal, yielded(round).reason
    with a_round(journal, outside) as round:
        assert await step(round, counted.run) == 1
        assert not round.stopped
        await unwinds(step(round, counted.run))
        assert len(yielded(round).journal.recorded) == 2
    assert (leaving.asked, reason) == (2, "lag")


async def test_a_round_with_an_input_request_does_not_yield() -> None:
    counted, outside = Counted(), ports()._replace(reason_to_move=Leaving())

    async def ask_then_step(round: Round) -> None:
        asking = asyncio.create_task(round.ask(question("a")))
        await asyncio.sleep(0)
        await step(round, counted.run)
        await asking

    with a_round(outside=outside) as round:
        await unwinds(ask_then_step(round))
        assert len(required(round).journal.recorded) == 1


async def test_a_round_that_yields_waits_for_concurrent_steps() -> None:
    go_on, outside = asyncio.Event(), ports()._replace(reason_to_move=Leaving())

    async def slow() -> str:
        await go_on.wait()
        return "slow"

    with a_round(outside=outside) as round:
        tasks = [
            asyncio.create_task(round.step("fast", returning(str, "fast"), (), {})),
            asyncio.create_task(round.step("slow", slow, (), {})),
        ]
        for _ in range(50):
            await asyncio.sleep(0)
        assert not any(task.done() for task in tasks)
        go_on.set()
        await asyncio.wait(tasks, timeout=10)
        assert len(yielded(round).journal.recorded) == 2


async def test_a_step_ends_only_once_its_journal_is_stored() -> None:
    kept: list[Journal] = []

    async def keeping(journal: Journal) -> None:
        await asyncio.sleep(0)
        kept.append(journal)

    def store_journal(journal: Callable[[], Journal]) -> Awaitable[None]:
        return keeping(journal())

    with a_round(outside=ports()._replace(store_journal=store_journal)) as round:
        assert await step(round, lambda: 7) == 7
        assert [list(each.recorded.values()) for each in kept] == [[7]]
