"""Calls that are taken over while something else goes wrong: they are not lost on the way."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import OperationalError

from mcphost.calls import streamed
from mcphost.calls.models import OpenQuestion, StreamedCall
from mcphost.calls.states import CallState, QuestionState
from mcphost.calls.streamed import NOBODY
from mcphost.serving import drain
from mcphost.serving.hop import in_database
from mcphost.serving.legacy import adoption, calls, keeping
from mcphost.serving.legacy import asking as asking_module
from mcphost.serving.legacy.cancelling import cancellations
from mcphost.tenants import selectors as tenants
from tests.cast import Cast
from tests.serving.legacy.callers import Caller, Shown, accept, true
from tests.serving.legacy.test_adoption import _dies, _not_leaving, _only, _row, _text, _waits

__all__ = ["_not_leaving"]

pytestmark = pytest.mark.django_db(transaction=True)


async def _finds_its_answer(caller: Caller, shown: Shown) -> bool:
    await caller.answer(shown.requests[0], accept(colour="red"))
    return _text(await caller.resumed(shown.ids[-1])) == "a wall is red"


async def test_who_has_a_call_taken_over_may_hang_up_meanwhile(
    asking: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    await _dies(_only())
    taken, gone = threading.Event(), threading.Event()
    real = streamed.adopt

    def adopt(*which: Any) -> Any:
        adopted = real(*which)
        taken.set()
        assert gone.wait(10)
        return adopted

    monkeypatch.setattr(streamed, "adopt", adopt)
    _, following = caller.following(shown.ids[0])
    await true(taken.is_set)
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following
    gone.set()
    assert await _finds_its_answer(caller, shown)


async def test_the_database_may_go_away_after_a_call_was_taken_over(
    asking: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    await _dies(_only())
    monkeypatch.setattr(tenants, "tenant", _once_away(tenants.tenant))
    await in_database(adoption.look)
    await true(lambda: calls.under_way)
    assert await _finds_its_answer(caller, shown)


async def test_a_call_that_cannot_go_on_ends_its_stream(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    await _dies(_only())
    await in_database(lambda: StreamedCall.objects.update(request="not sealed by us"))
    assert await caller.resumed(shown.ids[-1])
    assert (await _row()).state == CallState.CANCELLED


async def test_a_process_that_leaves_takes_over_nothing_more(
    asking: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    await _dies(_only())
    with monkeypatch.context() as patched:
        patched.setattr(keeping, "unseal", _as_the_drain_begins(keeping.unseal))
        await adoption.adopt()
        await true(lambda: StreamedCall.objects.get().owner == NOBODY)
    assert (await _row()).state == CallState.WAITING
    drain.reset()
    assert await _finds_its_answer(caller, shown)


async def test_what_was_called_off_before_the_drain_goes_on_nowhere(
    asking: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = await Caller.at(asking)
    await _waits(caller)
    loop = asyncio.get_running_loop()

    def withdrawals(*which: Any) -> list[bytes]:
        loop.call_soon_threadsafe(drain.begin)
        return []

    monkeypatch.setattr(asking_module, "withdrawals", withdrawals)
    (call,) = calls.under_way
    await cancellations.call_off(caller.session, call._incoming.exchange.id or 0)
    await true(lambda: not calls.under_way)
    assert (await _row()).state == CallState.CANCELLED


async def test_what_was_asked_and_answered_is_erased_when_the_call_is_over(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await _waits(caller)
    await caller.answer(shown.requests[0], accept(colour="red"))
    await shown.whole()
    question = await in_database(OpenQuestion.objects.get)
    assert (question.message, question.answer) == ("", "")
    assert question.state == QuestionState.ANSWERED


async def test_an_id_that_is_used_again_is_its_sessions_still(asking: Cast) -> None:
    caller = await Caller.at(asking)
    ended: list[str] = []
    session = caller.session.id
    first = cancellations.possible(session, 1, lambda: ended.append("first"))
    second = cancellations.possible(session, 1, lambda: ended.append("second"))
    with first:
        await cancellations.call_off(caller.session, 1)
        second.__enter__()
    cancellations._end(session)
    second.__exit__(None, None, None)
    assert ended == ["first", "second"]
    assert session not in cancellations._of_session


def _once_away(real: Callable[..., Any]) -> Callable[..., Any]:
    left = [OperationalError("the connection was lost")]

    def look(*which: Any) -> Any:
        if left:
            raise left.pop()
        return real(*which)

    return look


def _as_the_drain_begins(real: Callable[..., Any]) -> Callable[..., Any]:
    def open_it(*what: Any) -> Any:
        drain.begin()
        return real(*what)

    return open_it
