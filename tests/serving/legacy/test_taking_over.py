"""Takeovers during other faults: no call is lost."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import OperationalError

from mcphost.calls import session_calls
from mcphost.calls.models import OpenQuestion, StreamedCall
from mcphost.calls.session_calls import NO_OWNER
from mcphost.calls.states import CallState, QuestionState
from mcphost.serving import shutdown
from mcphost.serving.database import in_database
from mcphost.serving.legacy import call as calls
from mcphost.serving.legacy import questions as asking_module
from mcphost.serving.legacy import storage
from mcphost.serving.legacy.cancellation import cancellations, name_of
from mcphost.serving.legacy.takeover import takeovers
from mcphost.tenants import selectors as tenants
from tests.cast import Cast
from tests.serving.legacy.callers import Caller, Shown, accept, true
from tests.serving.legacy.test_takeover import _dies, _only, _row, _text, _waits

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
    real = session_calls.Takeover.__call__

    def take_over(takeover_: session_calls.Takeover) -> Any:
        taken_over = real(takeover_)
        taken.set()
        assert gone.wait(10)
        return taken_over

    monkeypatch.setattr(session_calls.Takeover, "__call__", take_over)
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
    await in_database(takeovers.look)
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
        patched.setattr(storage, "unseal", _as_the_drain_begins(storage.unseal))
        await takeovers.take_over()
        await true(lambda: StreamedCall.objects.get().owner == NO_OWNER)
    assert (await _row()).state == CallState.WAITING
    shutdown.reset()
    assert await _finds_its_answer(caller, shown)


async def test_what_was_called_off_before_the_drain_goes_on_nowhere(
    asking: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller = await Caller.at(asking)
    await _waits(caller)
    loop = asyncio.get_running_loop()

    def withdrawals(*which: Any) -> list[bytes]:
        loop.call_soon_threadsafe(shutdown.begin)
        return []

    monkeypatch.setattr(asking_module, "withdrawals", withdrawals)
    (call,) = calls.under_way
    await cancellations.cancel(caller.session, call._incoming.exchange.id or 0)
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
    name = name_of(session, 1)
    first, second = partial(ended.append, "first"), partial(ended.append, "second")
    cancellations.begin(session, name, first)
    await cancellations.cancel(caller.session, 1)
    cancellations.begin(session, name, second)
    cancellations.over(session, name, first)
    cancellations._end(session)
    cancellations.over(session, name, second)
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
        shutdown.begin()
        return real(*what)

    return open_it
