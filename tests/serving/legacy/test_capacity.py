"""The limits of one caller's calls at once."""

import pytest

from mcphost.serving.legacy import call
from tests.cast import Cast
from tests.serving.legacy.callers import Caller, accept, true
from tests.serving.legacy.test_takeover import _text, _waits

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _nothing_left() -> None:
    """Forget the calls of other tests, which have ended with their event loops."""
    call._calls.clear()
    call._bytes.clear()


@pytest.mark.parametrize("limit", [("MOST_CALLS", 2), ("MOST_BYTES", 20)])
async def test_who_has_too_much_under_way_is_refused_until_some_is_over(
    asking: Cast, monkeypatch: pytest.MonkeyPatch, limit: tuple[str, int]
) -> None:
    monkeypatch.setattr(call, *limit)
    caller, other = await Caller.at(asking), await Caller.at(asking, asking.member)
    first, second = await _waits(caller), await _waits(caller)
    refused = await caller.call("paint", what="a wall").settled()
    assert refused is not None
    assert b'"retryAfter":60' in refused.body
    assert (await _waits(other)).requests
    await caller.answer(first.requests[0], accept(colour="red"))
    await first.whole()
    assert (await _waits(caller)).requests
    assert not second.ended


async def test_what_is_over_takes_up_nothing(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    await caller.answer(shown.requests[0], accept(colour="red"))
    await shown.whole()
    assert _text(shown) == "a wall is red"
    await true(lambda: not call.under_way)
    assert not call._calls
    assert not call._bytes
