"""The outbound guard: a message is sent only on the stream to which it belongs (SEP-2260)."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from mcphost.audit.models import Entry
from mcphost.audit.records import MESSAGE_REFUSED
from mcphost.calls.ownership import Lease
from mcphost.calls.questions import RoundQuestions
from mcphost.calls.session_calls import WaitingCall
from mcphost.calls.streams import StreamRow
from mcphost.protocol import messages
from mcphost.routing import process
from mcphost.runtime.call import Principal, PrincipalKind
from mcphost.serving.database import in_database
from mcphost.serving.legacy import call as calls
from mcphost.serving.legacy.outbound_guard import NOT_ITS_STREAM, OVER, Gate, StoppedStreamError
from mcphost.serving.legacy.stream import Outgoing
from tests.cast import Cast
from tests.serving.legacy.callers import Caller, accept

pytestmark = pytest.mark.django_db(transaction=True)

REQUEST = b'{"jsonrpc":"2.0","id":"a","method":"elicitation/create","params":{}}'
LOG = messages.log_message("info", "hello")


async def _violations() -> list[Entry]:
    await process.stop()  # writes the waiting records
    found = Entry.objects.filter(action=MESSAGE_REFUSED).order_by("id")
    return await in_database(lambda: list(found))


PING = b'{"jsonrpc":"2.0","id":"ping-1","method":"ping"}'


async def test_a_get_stream_carries_only_notifications_and_pings(asking: Cast) -> None:
    caller = await Caller.at(asking)
    gate = Gate(caller.session, caller.principal)
    assert gate.says(LOG)
    assert gate.says(PING)
    assert gate.says(b"")
    assert not gate.says(REQUEST)
    assert not gate.says(messages.response(1, {}))
    assert not gate.answers(messages.response(1, {}))
    violations = await _violations()
    assert [one.reason for one in violations] == [NOT_ITS_STREAM] * 3
    assert {one.actor_id for one in violations} == {caller.principal.id}
    assert {one.facts["session"] for one in violations} == {str(caller.session.id)}


async def test_a_call_stream_carries_only_notifications_and_its_own_response(asking: Cast) -> None:
    caller = await Caller.at(asking)
    gate = Gate(caller.session, caller.principal, "7")
    assert gate.answers(messages.response("7", {}))
    assert gate.answers(b"")
    assert not gate.answers(messages.response(7, {}))
    assert not gate.says(messages.response("7", {}))
    assert not gate.says(PING)
    assert len(await _violations()) == 3


async def test_a_call_sends_input_requests_on_its_own_stream_while_it_is_alive(
    asking: Cast,
) -> None:
    caller, other = await Caller.at(asking), await Caller.at(asking)
    session = caller.session
    stream, taking = (
        StreamRow(uuid4(), session.tenant, session.id),
        Lease(uuid4(), session.tenant, uuid4(), 1),
    )
    asked = RoundQuestions(session.tenant, session.id, taking.id, 1, (), datetime.now(UTC))
    gate = Gate(session, caller.principal, 1)
    gate.asks(asked, taking, stream, live=True)
    nobody = Principal(PrincipalKind.ANONYMOUS, session.tenant, id=str(session.id))
    strangers: tuple[tuple[Gate, RoundQuestions, StreamRow], ...] = (
        (gate, asked._replace(call=uuid4()), stream),
        (gate, asked._replace(session=other.session.id), stream),
        (gate, asked._replace(tenant=uuid4()), stream),
        (Gate(other.session, caller.principal, 1), asked, stream),
        (Gate(session, nobody, 1), asked, stream),
    )
    for one, what, where in strangers:
        with pytest.raises(StoppedStreamError, match=NOT_ITS_STREAM):
            one.asks(what, taking, where, live=True)
    with pytest.raises(StoppedStreamError, match=OVER):
        gate.asks(asked, taking, stream, live=False)
    reasons = [one.reason for one in await _violations()]
    assert reasons == [NOT_ITS_STREAM] * len(strangers) + [OVER]


async def test_refused_messages_are_sent_on_no_stream(asking: Cast) -> None:
    caller = await Caller.at(asking)
    shown = await caller.streamed("paint", what="a wall")
    (question,) = await shown.asked()
    (call,) = calls.under_way
    stream: Outgoing = call.outgoing
    stream.send(REQUEST)
    foreign = RoundQuestions(asking.globex.id, uuid4(), uuid4(), 1, (), datetime.now(UTC))
    with pytest.raises(StoppedStreamError):
        await stream.ask([REQUEST], WaitingCall("", foreign))
    await caller.answer(question, accept(colour="red"))
    await shown.whole()
    assert len(shown.requests) == 1
    assert len(await _violations()) == 2
