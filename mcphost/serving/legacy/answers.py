"""Input responses from clients of sessions. Each is accepted once, and only for its input request.

The HTTP status is that of success in any case: clients of these revisions take any other for the
end of the session. A response that is not accepted is dropped, and recorded with the true reason.
"""

from functools import partial
from typing import Final
from uuid import UUID

import orjson

from mcphost.audit.records import ANSWER_REFUSED
from mcphost.calls import questions
from mcphost.calls.questions import AnsweredQuestion
from mcphost.calls.states import QuestionState
from mcphost.feed.nodes import heartbeat
from mcphost.protocol.legacy.opening import LegacyResponse
from mcphost.runtime.call import Principal
from mcphost.sealing.tokens import Purpose, SealError
from mcphost.serving import sealing
from mcphost.serving.context import ClientSession
from mcphost.serving.database import in_database
from mcphost.serving.legacy import outbound_guard, storage, takeover
from mcphost.serving.legacy.questions import answer_context
from mcphost.serving.legacy.refusal_records import refuse

NOT_ASKED: Final = "not-asked"
FOREIGN: Final = "foreign"
ANSWERED: Final = "answered"
LATE: Final = "late"


async def take(session: ClientSession, principal: Principal, response: LegacyResponse) -> None:
    """Store the input response for the waiting call, and notify the call's owner process.

    The response is committed when this returns. Raises the database's errors.
    """
    if outbound_guard.is_answer(response.id):
        return
    refused = partial(refuse, ANSWER_REFUSED, session, principal)
    try:
        question, owner = await _opened(session, response.id)
    except SealError as error:
        await refused(NOT_ASKED, facts={"why": error.reason})
        return
    if owner != session.id:
        await refused(FOREIGN)
        return
    answer = _Answer(session, question, _said(response))
    taken = await in_database(answer.keep)
    if taken is not None and taken.owner != heartbeat.id:
        await takeover.take_over(id=taken.call)
    if taken is None:
        found = await in_database(questions.find, question, session.id)
        if found is None:
            await refused(NOT_ASKED)
        elif not (answer.again and found.state is QuestionState.ANSWERED):
            reason = ANSWERED if found.state is QuestionState.ANSWERED else LATE
            await refused(reason, found.call, {"key": found.key})


class _Answer:
    """One input response, sealed only once.

    So a repeated `keep` recognizes its own row after a commit of unknown outcome. `again`: `keep`
    was repeated, and the call may have ended since.
    """

    def __init__(self, session: ClientSession, question: UUID, said: bytes) -> None:
        self._session = session
        self._question = question
        self._said = said
        self._sealed = ""
        self.again = False

    def keep(self) -> AnsweredQuestion | None:
        """Store the response; None if it was not accepted. In a database thread."""
        self.again = bool(self._sealed)
        if not self._sealed:
            context = answer_context(self._question)
            self._sealed = storage.seal(self._session.tenant, context, self._said)
        return questions.answer(self._question, self._session.id, self._sealed)


async def _opened(session: ClientSession, id: str | int) -> tuple[UUID, UUID]:
    """The ids of the input request that a response names, and of its session. Raises SealError."""
    payload = await sealing.unseal(Purpose.REQUEST_ID, session.tenant, str(id))
    return UUID(bytes=payload[:16]), UUID(bytes=payload[16:])


def _said(response: LegacyResponse) -> bytes:
    if response.error is not None:
        return orjson.dumps({"error": response.error})
    return orjson.dumps({"result": response.result})
