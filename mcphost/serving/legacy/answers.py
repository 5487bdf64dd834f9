"""Input responses from clients of sessions. Each is accepted once, and only for its input request.

The HTTP status is that of success in any case: clients of these revisions take any other for the
end of the session. A response that is not accepted is dropped, and recorded with the true reason.
"""

from functools import partial
from typing import Final
from uuid import UUID

import orjson

from mcphost.audit.records import ANSWER_REFUSED
from mcphost.audit.writer.writer import RecordLostError, RecordRefusedError
from mcphost.calls import questions
from mcphost.calls.questions import AnsweredQuestion
from mcphost.calls.states import QuestionState
from mcphost.feed.nodes import heartbeat
from mcphost.protocol.errors import unavailable
from mcphost.protocol.legacy.opening import LegacyResponse
from mcphost.runtime.call import Principal
from mcphost.sealing.tokens import Purpose, SealError
from mcphost.serving import sealing
from mcphost.serving.context import ClientSession
from mcphost.serving.database import in_database
from mcphost.serving.execution.commits import error_for
from mcphost.serving.legacy import outbound_guard
from mcphost.serving.legacy.questions import IncomingResponse, open_round
from mcphost.serving.legacy.refusal_records import refuse
from mcphost.serving.legacy.session import check
from mcphost.serving.legacy.takeover import takeovers

NOT_ASKED: Final = "not-asked"
FOREIGN: Final = "foreign"
ANSWERED: Final = "answered"
LATE: Final = "late"


async def take(session: ClientSession, principal: Principal, response: LegacyResponse) -> None:
    """Store the input response for the waiting call, and notify the call's owner process.

    The response is committed when this returns. Raises the database's errors, and ProtocolError
    (UNAVAILABLE) if it could not be stored; NoSessionError if the session has ended.
    """
    refused = partial(refuse, ANSWER_REFUSED, session, principal)
    if outbound_guard.is_answer(response.id):
        await check(session)
        return
    try:
        question, owner = await _opened(session, response.id)
    except SealError as unreadable:
        await check(session)
        await refused(NOT_ASKED, facts={"why": unreadable.reason})
        return
    refusal = response.error
    encoded = orjson.dumps({"result": response.result} if refusal is None else {"error": refusal})
    input_response = IncomingResponse(session.tenant, question, encoded)
    if await _pass_to_open_round(session, input_response):
        return
    await check(session)
    if owner != session.id:
        await refused(FOREIGN)
        return
    answer = _Answer(session, input_response)
    answered = await in_database(answer.store)
    if answered is not None and answered.owner != heartbeat.id:
        await takeovers.continue_call(answered.call, session.tenant)
    if answered is None:
        status = await in_database(questions.find, question, session.id)
        if status is None:
            await refused(NOT_ASKED)
        elif not (answer.again and status.state is QuestionState.ANSWERED):
            reason = ANSWERED if status.state is QuestionState.ANSWERED else LATE
            await refused(reason, status.call, {"key": status.key})


async def _pass_to_open_round(session: ClientSession, input_response: IncomingResponse) -> bool:
    """Give the response to the call that waits for it in this process; False if none does.

    Raises ProtocolError if it could not be stored: UNAVAILABLE if it may be sent again.
    """
    waiting = open_round(input_response.question, session.id)
    if waiting is None:
        return False
    try:
        return await waiting.take(input_response)
    except RecordLostError:
        raise unavailable("The input response could not be stored; send it again") from None
    except RecordRefusedError as error:  # the same response would be refused again
        raise error_for(error) from None


class _Answer:
    """Stores one input response for a call of another process, or one that has been answered.

    `again`: `keep` was repeated, and the call may have ended since.
    """

    def __init__(self, session: ClientSession, input_response: IncomingResponse) -> None:
        self._session = session
        self._input_response = input_response
        self._kept = False
        self.again = False

    def store(self) -> AnsweredQuestion | None:
        """Store the response; None if it was not accepted. In a database thread."""
        self.again = self._kept
        sealed, self._kept = self._input_response.sealed(), True
        return questions.answer(self._input_response.question, self._session.id, sealed)


async def _opened(session: ClientSession, id: str | int) -> tuple[UUID, UUID]:
    """The ids of the input request that a response names, and of its session. Raises SealError."""
    payload = await sealing.unseal(Purpose.REQUEST_ID, session.tenant, str(id))
    return UUID(bytes=payload[:16]), UUID(bytes=payload[16:])
