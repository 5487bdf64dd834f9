"""Random responses and states are refused, ignored or requested again: the server never fails, and
no tool acts."""

import asyncio
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcphost.routing import process
from tests.cast import Cast
from tests.mcp import Reply
from tests.rounds.client_steps import Asker, accept, calling, done, state_of
from tests.rounds.conftest import module

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats() | TEXT
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
ANSWERS = st.fixed_dictionaries(
    {},
    optional={
        "action": st.sampled_from(["accept", "decline", "cancel"]) | ANYTHING,
        "content": st.dictionaries(st.sampled_from(["size", "colour", ""]), ANYTHING) | ANYTHING,
        "role": st.just("assistant") | ANYTHING,
        "model": TEXT | ANYTHING,
        "roots": ANYTHING,
        "_meta": ANYTHING,
    },
)
RESPONSES = st.dictionaries(st.sampled_from(["sure", "size"]) | TEXT, ANSWERS | ANYTHING) | ANYTHING
STATES = TEXT | ANYTHING


def _is_an_answer(answer: Any) -> bool:
    """Whether it is one that the tool may act on."""
    if not isinstance(answer, dict) or answer.get("action") != "accept":
        return False
    size = (answer.get("content") or {}).get("size")
    return isinstance(size, int | float | str)


def _check(reply: Reply) -> None:
    assert reply.status in (200, 400), reply.raw
    assert b"Traceback" not in reply.raw
    if reply.status == 400:
        assert reply.error["code"] in (-32602, -32700)


async def _answered(asker: Asker, responses: Any) -> None:
    state = state_of(await asker.leg())
    module("asking").did.clear()
    _check(await asker.leg(requestState=state, inputResponses=responses))
    given = responses.get("sure") if isinstance(responses, dict) else None
    assert module("asking").did == [] or _is_an_answer(given)
    if module("asking").did == [] and not isinstance(given, dict):
        assert done(await asker.leg(state, {"sure": accept(size=1)}))


async def _stated(asker: Asker, state: Any) -> None:
    module("asking").did.clear()
    _check(await asker.leg(requestState=state, inputResponses={"sure": accept(size=1)}))
    assert module("asking").did == []


def test_no_response_or_state_makes_the_server_fail_or_run_the_tool(asking: Cast) -> None:
    asker = calling(asking.owner.mcp_token, "move", what="it", where={})

    @settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
    @given(RESPONSES, STATES)
    def sends(responses: Any, state: Any) -> None:
        orjson.dumps([responses, state])
        runner.run(_answered(asker, responses))
        runner.run(_stated(asker, state))

    with asyncio.Runner() as runner:
        sends()
        runner.run(process.stop())
