"""Any params are served or refused; none make the server fail."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcphost.protocol.errors import HTTP_STATUS, INTERNAL_ERROR
from mcphost.protocol.tasks import EXTENSION
from mcphost.serving.methods.dispatch import HANDLERS
from tests.cast import Cast
from tests.mcp import ask

pytestmark = pytest.mark.django_db(transaction=True)

Fields = tuple[Mapping[str, st.SearchStrategy[Any]], Mapping[str, st.SearchStrategy[Any]]]

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = st.sampled_from(["review", "echo", "guarded", "code", "style", "name"]) | TEXT
URIS = st.builds(
    "".join,
    st.tuples(
        st.sampled_from(["docs:", "file:///", "users://a/notes", "users://", "vault:", ""]),
        st.sampled_from(["handbook", "{key}", "{+path}", "{name}/notes{?of}", ""])
        | st.text("ab/.%2Ff?of=&#{}\0é", max_size=12),
    ),
)
JSON = (
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | TEXT | st.just([]) | st.just({})
)
ARGUMENTS = st.dictionaries(NAMES, TEXT, max_size=3)
REFS = st.fixed_dictionaries({"type": st.just("ref/prompt"), "name": NAMES}) | (
    st.fixed_dictionaries({"type": st.just("ref/resource"), "uri": URIS})
)
PAGE: Fields = ({}, {"cursor": TEXT})
OF_TASK = {"taskId": TEXT | st.just("0" * 32)}
SOUND: Mapping[str, Fields] = {
    "server/discover": ({}, {}),
    "tools/list": PAGE,
    "tools/call": ({"name": NAMES}, {"arguments": ARGUMENTS}),
    "prompts/list": PAGE,
    "prompts/get": ({"name": NAMES}, {"arguments": ARGUMENTS, "requestState": TEXT}),
    "resources/list": PAGE,
    "resources/templates/list": PAGE,
    "resources/read": ({"uri": URIS}, {"requestState": TEXT}),
    "completion/complete": (
        {"ref": REFS, "argument": st.fixed_dictionaries({"name": NAMES, "value": TEXT})},
        {"context": st.fixed_dictionaries({}, optional={"arguments": ARGUMENTS})},
    ),
    "tasks/get": (OF_TASK, {}),
    "tasks/update": ({**OF_TASK, "inputResponses": st.dictionaries(NAMES, JSON, max_size=2)}, {}),
    "tasks/cancel": (OF_TASK, {}),
}
QUICKLY = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


async def _served_or_refused(offered: Cast, method: str, params: dict[str, Any]) -> None:
    can = {"extensions": {EXTENSION: {}}}
    reply = await ask("acme", method, params, offered.owner.mcp_token, capabilities=can)
    assert reply.status < 500
    if "error" in reply.last:
        assert reply.error["code"] != INTERNAL_ERROR
        assert reply.error["code"] in HTTP_STATUS


@QUICKLY
@given(data=st.data())
@pytest.mark.parametrize("method", sorted(HANDLERS))
async def test_params_of_the_right_shape_are_served_or_refused(
    offered: Cast, method: str, data: st.DataObject
) -> None:
    needed, more = SOUND[method]
    params = data.draw(st.fixed_dictionaries(needed, optional=more))
    await _served_or_refused(offered, method, params)


@QUICKLY
@given(data=st.data())
@pytest.mark.parametrize("method", sorted(HANDLERS))
async def test_params_of_any_other_shape_are_served_or_refused(
    offered: Cast, method: str, data: st.DataObject
) -> None:
    needed, more = SOUND[method]
    others = st.dictionaries(st.sampled_from([*needed, *more, "inputResponses"]), JSON, max_size=2)
    params = data.draw(st.fixed_dictionaries({}, optional={**needed, **more}))
    await _served_or_refused(offered, method, {**params, **data.draw(others)})
