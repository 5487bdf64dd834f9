"""The output schema is derived from the return type, and only values that can be sent become a
result."""

import collections.abc
import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, field_serializer
from typing_extensions import TypedDict

from mcphost.kinds.functions.returns import InvalidResultError, Returns, returns_of
from mcphost.sdk import (
    Annotations,
    Audio,
    BlobResource,
    EmbeddedResource,
    Image,
    ResourceLink,
    Result,
    Text,
    TextResource,
)

ENOUGH = 1_000_000


class Weather(BaseModel):
    city: str
    degrees: Annotated[int, Field(alias="temperature", le=60)]


@dataclass
class Point:
    x: int
    y: int


class Pair(TypedDict):
    left: str
    right: str


class Colour(StrEnum):
    RED = "red"


def encoded(annotation: Any, value: Any, limit: int = ENOUGH) -> dict[str, Any]:
    return dict(returns_of(annotation, None).encode(value, limit).result)


def detail(annotation: Any, value: Any, given: dict[str, Any] | None = None) -> str:
    with pytest.raises(InvalidResultError) as caught:
        returns_of(annotation, given).encode(value, ENOUGH)
    assert caught.value.message == ""
    return caught.value.detail


@pytest.mark.parametrize(
    "annotation",
    [
        str,
        None,
        Any,
        object,
        Text,
        list[Text],
        tuple[Text, Annotated[Image, "seen"]],
        Result,
    ],
)
def test_text_content_and_none_have_no_output_schema(annotation: Any) -> None:
    assert returns_of(annotation, None).schema is None


@pytest.mark.parametrize("annotation", [int, list, tuple[int, str], dict[str, int], Point, Colour])
def test_every_other_return_type_has_an_output_schema(annotation: Any) -> None:
    assert returns_of(annotation, None).schema is not None


@pytest.mark.requirement("tools.call.structured-as-text")
def test_a_model_is_returned_as_structured_content_and_as_text() -> None:
    assert encoded(Weather, Weather(city="Oslo", temperature=3)) == {
        "content": [{"type": "text", "text": '{"city":"Oslo","temperature":3}'}],
        "structuredContent": {"city": "Oslo", "temperature": 3},
    }


@pytest.mark.parametrize(
    ("annotation", "value", "json"),
    [
        (Point, Point(1, 2), {"x": 1, "y": 2}),
        (Pair, {"left": "a", "right": "b"}, {"left": "a", "right": "b"}),
        (list[Point], [Point(1, 2)], [{"x": 1, "y": 2}]),
        (set[int], {1}, [1]),
        (int, 5, 5),
        (int | None, None, None),
        (Colour, Colour.RED, "red"),
        (dict[int, str], {1: "a"}, {"1": "a"}),
        (Any, {"a": [1, None]}, {"a": [1, None]}),
        (Any, Weather(city="Oslo", temperature=3), {"city": "Oslo", "temperature": 3}),
    ],
)
def test_structured_content_may_be_any_json(annotation: Any, value: Any, json: Any) -> None:
    assert encoded(annotation, value)["structuredContent"] == json


@pytest.mark.parametrize(("value", "text"), [("héllo", "héllo"), (Colour.RED, "red"), ("", "")])
def test_a_text_result_has_no_structured_content(value: str, text: str) -> None:
    assert encoded(str, value) == {"content": [{"type": "text", "text": text}]}


@pytest.mark.parametrize("value", [None, [], ()])
def test_a_result_of_none_has_no_content(value: Any) -> None:
    assert encoded(None, value) == {"content": []}


BLOCKS = [
    (
        Text(text="a", annotations=Annotations(priority=0.5)),
        {"type": "text", "text": "a", "annotations": {"priority": 0.5}},
    ),
    (
        Image(data="aGk=", mime_type="image/png"),
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
    ),
    (
        Audio(data="aGk=", mime_type="audio/wav"),
        {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
    ),
    (
        ResourceLink(uri="test://a", name="a", mime_type="text/plain"),
        {"type": "resource_link", "uri": "test://a", "name": "a", "mimeType": "text/plain"},
    ),
    (
        EmbeddedResource(resource=TextResource(uri="test://a", text="a")),
        {"type": "resource", "resource": {"uri": "test://a", "text": "a"}},
    ),
    (
        EmbeddedResource(resource=BlobResource(uri="test://a", blob="aGk=")),
        {"type": "resource", "resource": {"uri": "test://a", "blob": "aGk="}},
    ),
]


@pytest.mark.requirement("tools.call.content")
@pytest.mark.parametrize(("block", "wire"), BLOCKS)
def test_content_of_every_type_is_sent_unchanged(block: Any, wire: dict[str, Any]) -> None:
    assert encoded(type(block), block) == {"content": [wire]}
    assert encoded(list[type(block)], [block, block]) == {"content": [wire, wire]}  # type: ignore[misc]
    assert encoded(Any, (block,)) == {"content": [wire]}


def test_a_result_object_determines_exactly_what_is_sent() -> None:
    assert encoded(Result, Result([Text(text="Look:")], {"a": 1})) == {
        "content": [{"type": "text", "text": "Look:"}],
        "structuredContent": {"a": 1},
    }
    assert encoded(Result, Result([Text(text="No.")], is_error=True)) == {
        "content": [{"type": "text", "text": "No."}],
        "isError": True,
    }
    assert encoded(Result, Result()) == {"content": []}


GIVEN = {"type": "object", "required": ["answer"]}


@pytest.mark.requirement("tools.call.structured")
def test_an_explicit_output_schema_is_kept_and_results_are_validated_by_it() -> None:
    returns = returns_of(Any, GIVEN)
    assert returns.schema == GIVEN
    assert returns.encode({"answer": 42}, ENOUGH).result["structuredContent"] == {"answer": 42}
    assert detail(Any, {"question": 1}, GIVEN) == "answer: is required"
    assert returns.encode(Result(structured={"answer": 1}), ENOUGH).result["structuredContent"]


def test_an_output_schema_requires_structured_content() -> None:
    assert detail(Any, Result([Text(text="42")]), GIVEN) == (
        "there is an output schema but no structured content"
    )
    assert detail(Any, "42", GIVEN) == 'is not of type "object"'


def test_an_error_result_need_not_fit_the_output_schema() -> None:
    returns = returns_of(Any, GIVEN)
    refusal = Result([Text(text="No.")], is_error=True)
    assert returns.encode(refusal, ENOUGH).result["isError"] is True
    explained = Result(structured={"code": 7}, is_error=True)
    assert returns.encode(explained, ENOUGH).result["structuredContent"] == {"code": 7}


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Weather, {"city": "Oslo"}),
        (Weather, Weather.model_construct(city="Oslo", degrees=61)),
        (Weather, None),
        (int, "5"),
        (list[int], [1, "2"]),
    ],
)
def test_a_value_that_does_not_fit_the_return_type_is_refused(annotation: Any, value: Any) -> None:
    assert detail(annotation, value)


class Stubborn(BaseModel):
    value: int = 1

    @field_serializer("value")
    def refuse(self, value: int) -> int:
        raise LookupError("cannot")


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)
DEEP: list[Any] = []
for _ in range(2000):
    DEEP = [DEEP]


UNSENDABLE: dict[str, Any] = {
    "an object inside": {"a": object()},
    "not a number": math.nan,
    "minus infinity": {"a": -math.inf},
    "a huge negative integer": {"a": -(2**63) - 1},
    "a lone surrogate as a key": {"\ud800": 1},
    "bytes": b"\xff",
    "a circle": CIRCLE,
    "a deep list": DEEP,
    "a serialiser that raises": Stubborn(),
    "one such block among others": [Text(text="fine"), object()],
    "a result with not a number": Result(structured=math.nan),
    "a result with what is no block": Result(["no block"]),  # type: ignore[list-item]
}


@pytest.mark.parametrize("what", UNSENDABLE)
def test_a_value_that_json_cannot_represent_is_refused_without_another_exception(what: str) -> None:
    assert detail(Any, UNSENDABLE[what])


class Reading(BaseModel):
    value: float | None = None
    data: Any = None


@pytest.mark.parametrize(
    "reading",
    [
        Reading(value=math.nan),
        Reading(data={"a": [(1.0, {math.inf})]}),
    ],
)
def test_nan_is_never_sent_as_null(reading: Reading) -> None:
    assert "NaN" in detail(Reading, reading)


def test_a_result_at_the_limit_is_sent_and_one_byte_more_is_not() -> None:
    size = len('{"content":[{"type":"text","text":"aaaa"}]}')
    assert encoded(str, "aaaa", size)
    with pytest.raises(InvalidResultError) as caught:
        encoded(str, "aaaaa", size)
    assert caught.value.message == f"The result is too large: more than {size} bytes."


TEXT = st.text(st.characters(codec="utf-8"))
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=20,
)


@settings(deadline=None)
@given(JSON)
def test_any_json_is_returned_unchanged(value: Any) -> None:
    assert Returns().encode(Result(structured=value), ENOUGH).result["structuredContent"] == value


PICTURE = Image(type="image", data="eA==", mime_type="image/png")
BLOCK = {"type": "image", "data": "eA==", "mimeType": "image/png"}


def text(value: str) -> dict[str, str]:
    return {"type": "text", "text": value}


@pytest.mark.parametrize(
    "annotation", [Any, list[str | Image], tuple[str, Image], list[Any] | Text]
)
@pytest.mark.parametrize(
    ("value", "content"),
    [
        (["a picture", PICTURE], [text("a picture"), BLOCK]),
        ([PICTURE, "a", "b", PICTURE], [BLOCK, text("a"), text("b"), BLOCK]),
        (("a", PICTURE), [text("a"), BLOCK]),
        ([{"n": 1}, PICTURE, 5, None, [1, 2]], [text('{"n":1}'), BLOCK, text("5"), text("[1,2]")]),
        (["a", ["b", PICTURE]], [text("a"), text("b"), BLOCK]),
        ([Colour.RED, PICTURE], [text("red"), BLOCK]),
    ],
)
def test_texts_and_json_between_content_become_content_blocks(
    annotation: Any, value: Any, content: Any
):
    assert encoded(annotation, value) == {"content": content}


@pytest.mark.parametrize("annotation", [list, list[Any], tuple, collections.abc.Sequence])
def test_content_in_a_list_is_not_repeated_in_structured_content(annotation: Any) -> None:
    sent = encoded(annotation, ["a picture", {"n": 1}, PICTURE])
    assert sent == {
        "content": [text("a picture"), text('{"n":1}'), BLOCK],
        "structuredContent": ["a picture", {"n": 1}],
    }


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Any, {"picture": PICTURE}),
        (dict, {"a": [PICTURE]}),
        (dict[str, Any], {"a": {"b": PICTURE}}),
        (list, ["a", {"b": PICTURE}]),
    ],
)
def test_content_in_an_object_is_refused(annotation: Any, value: Any) -> None:
    assert "content is in an object" in detail(annotation, value)


@pytest.mark.parametrize(
    ("annotation", "value", "content"),
    [
        (str, "a\ud83d b", [text("a\ufffd b")]),
        (Any, [Text(text="a\ud83d"), "b\ude00"], [text("a\ufffd"), text("b\ufffd")]),
        (Any, {"a": ["\ud83d"]}, [text('{"a":["\ufffd"]}')]),
        (
            Weather,
            Weather(city="\ud83d", temperature=3),
            [text('{"city":"\ufffd","temperature":3}')],
        ),
    ],
)
def test_unpaired_surrogates_are_replaced(annotation: Any, value: Any, content: Any) -> None:
    assert encoded(annotation, value)["content"] == content
