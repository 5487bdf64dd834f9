"""Refusing large arguments costs little more than parsing them, whatever their schema."""

from collections.abc import Callable
from datetime import date
from typing import Any

import orjson
import pytest
from pydantic import BaseModel, Field, ValidationError

from mcphost.protocol.effort import EXPLAINED_BYTES, EXPLAINED_VALUES
from mcphost.runtime.schema import ArgumentProblem, Validator, has_unique_items
from mcphost.runtime.stopping import MisfitError, stopping
from tests.bodies import JUNK, KIBIBYTE, MEBIBYTE, STEPS, TIMES, is_cheap
from tests.plugins.costs import growth_of
from tests.protocol.test_effort import CHEAP, DEAR, INTEGER, many
from tests.work_counts import Work, peak_of

SIZE = 100 * KIBIBYTE
TEXT = {"type": "string"}
CARD = {
    "type": "object",
    "properties": {"a": INTEGER, "b": {"type": "array", "items": TEXT}},
    "required": ["a"],
}


def refusing(validator: Validator) -> Callable[[bytes], Any]:
    return lambda body: validator.problems(orjson.loads(body))


def test_a_large_value_is_parsed_and_validated_once_and_not_explained() -> None:
    """With `uniqueItems` it is also written once, to find numbers that has_float_collisions."""
    dear = {}
    for name, schema in {**CHEAP, **DEAR}.items():
        validator = Validator(schema)
        act, writes = refusing(validator), 1 + has_unique_items(schema)
        for junk, make in JUNK.items():
            body = orjson.dumps({"list": make(SIZE)})
            with Work() as work:
                act(body)
            if not is_cheap(work, validations=1, writes=writes):
                dear[f"{junk} for {name}"] = work.steps, work.calls
    assert dear == {}


WORST: dict[str, tuple[Any, str]] = {
    "texts": (many(TEXT), "zeros"),
    "alternatives": (many({"anyOf": [CARD] * 5}), "zeros"),
    "alternatives of lists": ({"anyOf": [many({"anyOf": [CARD] * 5})] * 5}, "zeros"),
    "members": ({"properties": {"list": {"additionalProperties": TEXT}}}, "members"),
}


each_of_the_worst = pytest.mark.parametrize(("schema", "junk"), WORST.values(), ids=WORST)


@each_of_the_worst
def test_the_worst_values_take_little_memory(schema: Any, junk: str) -> None:
    body = orjson.dumps({"list": JUNK[junk](4 * SIZE)})
    assert peak_of(refusing(Validator(schema)), body) <= peak_of(orjson.loads, body) + len(body)


@pytest.mark.cost
@each_of_the_worst
def test_the_worst_values_cost_at_most_twice_parsing_and_validation(schema, junk, compare_cpu):
    body = orjson.dumps({"list": JUNK[junk](2 * MEBIBYTE)})
    validator, parsed = Validator(schema), orjson.loads(body)

    def act() -> None:
        refusing(validator)(body)

    def parse() -> None:
        orjson.loads(body)

    compare_cpu(
        "refusing", act, lambda: (parse(), parse(), validator._compiled.is_valid(parsed)), 1
    )
    parsing = max(growth_of(parse) for _ in range(2))
    assert min(growth_of(act) for _ in range(3)) <= TIMES * parsing + len(body) + MEBIBYTE


NEIGHBOURS: dict[str, list[Any]] = {
    "numbers": [2**63 + n for n in range(1_000)],
    "lists": [[2**63 + n] for n in range(1_000)],
}


@pytest.mark.parametrize("numbers", NEIGHBOURS.values(), ids=NEIGHBOURS)
def test_numbers_equal_as_floats_are_not_compared_one_by_one(numbers: list[Any]) -> None:
    """Comparing a thousand of them one by one would take thirty thousand times as long as parsing."""
    validator = Validator({"properties": {"list": {"uniqueItems": True}}})
    with Work() as work:
        problems = validator.problems({"list": numbers})
    assert problems[0].message.startswith("holds different whole")
    assert work.calls["is_valid"] == 0, "the schema's check compares them one by one"
    assert work.steps < 10 * len(numbers)


# --- messages ---


@pytest.mark.parametrize(
    "numbers",
    [
        *([2**63 + n for n in range(100)], [2**63 + n * 4_096 for n in range(1_000)]),
        *([n / 7 * 1e300 for n in range(1_000)], [*range(1_000), 2**53 - 1], ["a", {}, 1 << 60]),
        [*range(1_000)],
    ],
)
def test_numbers_with_different_floats_are_checked_for_uniqueness(numbers: list[Any]) -> None:
    validator = Validator({"properties": {"list": {"uniqueItems": True}}})
    assert validator.problems({"list": numbers}) == ()
    assert validator.problems({"list": [*numbers, numbers[0]]}) != ()


def test_numbers_beyond_orjsons_range_are_compared_exactly() -> None:
    huge = {"list": [10**400 + n for n in range(101)]}
    assert Validator({"properties": {"list": {"uniqueItems": True}}}).problems(huge) == ()


def test_a_misfit_above_64_kib_is_reported_without_details() -> None:
    small, large = "a" * 1_000, "a" * EXPLAINED_BYTES
    schema = {"properties": {"size": INTEGER}}
    assert Validator(schema).problems({"size": small})[0].path == "size"
    assert Validator(schema).problems({"size": large}) == (
        ArgumentProblem("", "does not fit the schema"),
    )


def test_the_first_misfit_of_many_values_is_named() -> None:
    values = [1] * EXPLAINED_VALUES + ["x", "y"]
    assert Validator({"items": INTEGER}).problems(values) == (
        ArgumentProblem(str(EXPLAINED_VALUES), 'is not of type "integer"'),
    )


def test_a_misfit_among_many_values_with_alternatives_is_reported_without_its_path() -> None:
    schema = {"items": {"anyOf": [INTEGER, {"type": "null"}]}}
    few, many_values = [1, "x"], [1] * (EXPLAINED_VALUES // 2) + ["x"]
    assert [each.path for each in Validator(schema).problems(few)] == ["1"]
    assert Validator(schema).problems(many_values) == (
        ArgumentProblem("", "does not fit the schema"),
    )


# --- what pydantic reads ---


class Row(BaseModel):
    day: date
    count: int = 3


class Everything(BaseModel):
    days: list[date] = Field([], max_length=10**7)
    by_name: dict[str, date] = {}
    different: set[date] = set()
    fixed: tuple[date, ...] = ()
    rows: list[Row] = []
    maybe: list[date] | None = None
    open: dict[str, Any] = {"type": "list"}


class Tree(BaseModel):
    day: date | None = None
    children: "list[Tree]" = []


class Either(BaseModel):
    either: dict[str, date] | dict[str, int] = {}


LARGE: dict[str, Any] = {
    "days": ["x"] * 30_000,
    "by_name": {f"k{n}": "x" for n in range(15_000)},
    "rows": [{"day": "x"}] * 10_000,
    "maybe": ["x"] * 30_000,
}


@pytest.mark.parametrize("field", LARGE)
def test_reading_a_large_value_ends_at_the_first_misfit(field: str) -> None:
    read, body = stopping(Everything), orjson.dumps({field: LARGE[field]})
    with pytest.raises((MisfitError, ValidationError)) as caught, Work() as work:
        read(body)
    error = caught.value.__cause__ if isinstance(caught.value, MisfitError) else caught.value
    assert isinstance(error, ValidationError)
    assert error.error_count() == 1
    assert work.steps <= STEPS


def test_reading_with_early_stop_returns_the_same_values_as_pydantic() -> None:
    day = "2026-07-28"
    written = {
        "days": [day],
        "by_name": {"a": day},
        "different": [day],
        "fixed": [day],
        "rows": [{"day": day}],
        "open": {"a": [1]},
    }
    body = orjson.dumps(written)
    assert stopping(Everything)(body) == Everything.model_validate_json(body)
    body = orjson.dumps({"children": [{"day": day, "children": [{}]}]})
    assert stopping(Tree)(body) == Tree.model_validate_json(body)
    for either in ({"a": day}, {"a": 5}):
        body = orjson.dumps({"either": either})
        assert stopping(Either)(body) == Either.model_validate_json(body)


def test_a_misfit_in_a_union_raises_a_validation_error_and_elsewhere_a_misfit() -> None:
    with pytest.raises(ValidationError):
        stopping(Either)(b'{"either": {"a": "x"}}')
    with pytest.raises(MisfitError):
        stopping(Everything)(b'{"by_name": {"a": "x"}, "days": ["x", "y"]}')
