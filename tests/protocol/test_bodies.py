"""Refusing a large body costs little more than parsing it, whatever the error and its position."""

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from mcphost.protocol.effort import EXPLAINED_BYTES
from mcphost.protocol.errors import ProtocolError
from mcphost.protocol.legacy.opening import LegacyBody, fitting
from mcphost.protocol.nesting import _OF_MESSAGE, MAX_DEPTH
from mcphost.protocol.opening import open_post
from mcphost.protocol.revisions import REVISIONS
from mcphost.protocol.shapes import DEEP as IN_SHAPES
from mcphost.protocol.shapes import wire_shapes
from mcphost.serving.legacy.methods import OF_TASKS, OWN, SHARED
from mcphost.serving.methods.dispatch import HANDLERS, LONG_LIVED
from tests.bodies import (
    KIBIBYTE,
    MEBIBYTE,
    MODERN,
    SESSION,
    STEPS,
    TIMES,
    Act,
    Place,
    answers,
    in_session,
    is_cheap,
    modern,
    places,
)
from tests.plugins.costs import CompareCpu, growth_of
from tests.protocol.requests import REVISION as MODERN_REVISION
from tests.protocol.requests import call, headers_of, raw
from tests.work_counts import Work, peak_of

REVISION = "2025-11-25"
LOOKS = 8
"""The most that one validation against the wire schemas may cost, as a multiple of parsing: it is 0.1 to 3, by
machine."""
SIZE = 75 * KIBIBYTE
BODY_LIMIT = 4 * MEBIBYTE
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
FORM = {"action": "accept", "content": {"name": "Ada"}}
DEEP = ("zeros", "blocks and a zero", "members")
SHALLOW = (*DEEP, "members that are objects", "a long text")
IN_FULL = ("tools/call", "initialize")
"""The methods that are tested with junk in every place, also in `_meta` and input responses, which
are the same for all methods."""


def opening(message: Any) -> Act:
    """Return a function that opens a body with the headers of `message`."""
    session = "io.modelcontextprotocol/protocolVersion" not in message.get("params", {}).get(
        "_meta", {}
    )
    headers = raw({"mcp-protocol-version": REVISION}) if session else headers_of(message)

    def act(body: bytes) -> None:
        try:
            opened = open_post(headers, body)
            if isinstance(opened, LegacyBody):
                fitting(opened, REVISIONS[REVISION])
        except ProtocolError as error:
            assert len(error.message) < 2_000

    return act


def spoiled(message: Any) -> Iterator[tuple[str, Place]]:
    """Yield junk and the places for it. Places that all methods have are tested for `IN_FULL` only."""
    for place in places(message):
        deep = len(place.steps) > 2
        if "result" in place.steps and deep:
            continue  # the contents of results are not checked here
        own = place.steps[1:2] not in {(), ("_meta",)} and not (
            deep and "inputResponses" in place.steps
        )
        if own or message.get("method") in IN_FULL:
            yield from ((name, place) for name in (DEEP if deep else SHALLOW))


def most_validations(message: Any, place: Place) -> int:
    """One of the depth, one of the params if their method has a schema, one of each input response."""
    responses = message.get("params", {}).get("inputResponses", {})
    adds_one = place.steps[-2:] == ("inputResponses", "*")
    return 1 + (message.get("method") in IN_SHAPES) + len(responses) + adds_one


def most_steps(place: Place) -> int:
    """Capabilities are walked: four lines for a member of eleven bytes."""
    return STEPS + (SIZE * 4 // 11 if CAPABILITIES in place.steps else 0)


def check(message: Any) -> None:
    act = opening(message)
    act(orjson.dumps(message))  # some things are made at their first use
    dear = {}
    for name, place in spoiled(message):
        body = place.filled(message, name, SIZE)
        assert len(body) > EXPLAINED_BYTES, name
        with Work() as work:
            act(body)
        validations, steps = most_validations(message, place), most_steps(place)
        if not is_cheap(work, validations=validations, writes=1, steps=steps):
            dear[f"{name} at {place}"] = work.steps, work.calls
    assert dear == {}


@pytest.mark.parametrize("method", MODERN)
def test_a_large_request_is_parsed_and_validated_once(method: str) -> None:
    check(modern(method))


@pytest.mark.parametrize("method", SESSION)
def test_a_large_session_message_is_parsed_and_validated_once(method: str) -> None:
    check(in_session(method))


@pytest.mark.parametrize("answer", dict(answers()).values(), ids=dict(answers()))
def test_a_large_input_response_in_a_session_is_parsed_and_validated_once(answer: Any) -> None:
    check(answer)


WALKED = {
    "extensions": (
        "tools/call",
        ("_meta", CAPABILITIES, "extensions"),
        {f"k{n}": {} for n in range(STEPS)},
    ),
    "forms": ("tools/call", ("inputResponses",), {f"k{n}": FORM for n in range(STEPS)}),
    "task ids": ("subscriptions/listen", ("notifications", "taskIds"), ["t"] * STEPS),
}
"""What is checked in Python, by hand: many of them that are valid."""


@pytest.mark.parametrize(("method", "steps", "many"), WALKED.values(), ids=WALKED)
def test_walking_a_body_in_python_executes_few_lines_per_value(method, steps, many):
    message = modern(method)
    node = message["params"]
    for step in steps[:-1]:
        node = node[step]
    node[steps[-1]] = many
    body, act = orjson.dumps(message), opening(message)
    act(body)
    with Work() as work:
        act(body)
    assert STEPS < work.steps < 7 * STEPS


def test_every_method_has_a_body_in_these_tests() -> None:
    assert MODERN.keys() == HANDLERS.keys() | LONG_LIVED.keys()
    notifications = {name for name in SESSION if name.startswith("notifications/")}
    assert SESSION.keys() - notifications - {"initialize"} == OWN.keys() | OF_TASKS.keys() | SHARED


WORST = {
    "zeros for blocks": (
        "tools/call",
        Place(("params", "inputResponses", "sampling", "content")),
        "zeros",
    ),
    "blocks and a zero": (
        "prompts/get",
        Place(("params", "inputResponses", "tools", "content", 1, "content")),
        "blocks and a zero",
    ),
    "arguments that are no texts": (
        "completion/complete",
        Place(("params", "context", "arguments")),
        "members",
    ),
    "URIs that are none": (
        "subscriptions/listen",
        Place(("params", "notifications", "resourceSubscriptions")),
        "zeros",
    ),
    "icons that are none": (
        "completion/complete",
        Place(("params", "_meta", "io.modelcontextprotocol/clientInfo", "icons")),
        "empty objects",
    ),
}


each_of_the_worst = pytest.mark.parametrize(("method", "place", "junk"), WORST.values(), ids=WORST)


@each_of_the_worst
def test_the_worst_bodies_take_little_memory(method: str, place: Place, junk: str) -> None:
    message = modern(method)
    body = place.filled(message, junk, 8 * SIZE)
    act = opening(message)
    act(body)  # some things are made at their first use
    assert peak_of(act, body) <= peak_of(orjson.loads, body) + len(body)


@pytest.mark.cost
@each_of_the_worst
def test_the_worst_bodies_cost_at_most_twice_their_parsing_and_validation(
    method: str, place: Place, junk: str, compare_cpu: CompareCpu
) -> None:
    message = modern(method)
    body = place.filled(message, junk, BODY_LIMIT)
    size, parsed, act = len(body), orjson.loads(body), opening(message)
    assert BODY_LIMIT * 0.8 < size < BODY_LIMIT * 1.2

    def parse() -> None:
        orjson.loads(body)

    def look() -> None:
        _OF_MESSAGE.is_valid(parsed)
        wire_shapes.responses.fits(parsed["params"].get("inputResponses", {}))
        if wire := wire_shapes.request(method, MODERN_REVISION):
            wire.shape.fits(parsed)

    compare_cpu("opening", lambda: act(body), lambda: (parse(), parse(), look()), 1)
    compare_cpu("validation", look, parse, LOOKS)
    parsing = max(growth_of(parse) for _ in range(2))
    growth = min(growth_of(lambda: act(body)) for _ in range(3))
    assert growth <= TIMES * parsing + size + MEBIBYTE


# --- messages and validity ---


def message_of(message: Any) -> str:
    with pytest.raises(ProtocolError) as caught:
        opening_of(message)
    assert caught.value.code == -32602
    return caught.value.message


def opening_of(message: Any) -> Any:
    return open_post(headers_of(message), orjson.dumps(message))


@pytest.mark.parametrize(
    ("size", "fits"), [(1, True), (0, True), (None, True), (1.0, False), (1.5, False), ("1", False)]
)
def test_a_resource_size_is_an_integer_written_without_fraction_or_exponent(
    size: Any, fits: bool
) -> None:
    link = {"type": "resource_link", "name": "a", "uri": "a:b", "size": size}
    result = {"type": "tool_result", "toolUseId": "1", "content": [link]}
    message = modern("tools/call")
    message["params"]["inputResponses"]["tools"]["content"] = [result]
    if fits:
        assert opening_of(message)
    else:
        assert "inputResponses.tools must be the result" in message_of(message)


@pytest.mark.parametrize("padding", [0, 2_000])
@pytest.mark.parametrize("brackets", [0, 100])
@pytest.mark.parametrize("depth", [60, 61, 200])
def test_bodies_nested_deeper_than_64_levels_are_refused(depth: int, brackets: int, padding: int):
    nested: Any = []
    for _ in range(depth - 1):
        nested = [nested]
    arguments = {"nested": nested, "wide": [[]] * brackets, "long": "[" * padding}
    message = call(arguments=arguments)
    if depth + 3 <= MAX_DEPTH:  # the message, its params and the arguments are levels, too
        assert opening_of(message).params["arguments"] == arguments
    else:
        with pytest.raises(ProtocolError, match="nested deeper"):
            opening_of(message)
