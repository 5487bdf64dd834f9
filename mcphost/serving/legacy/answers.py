"""Answers that clients of sessions give to questions: each is taken once, for its question only.

Whoever answers is told that it was accepted, whatever it was: clients of these revisions take anything
else for the end. What is not taken is recorded, with the true reason, and goes nowhere.
"""

from functools import partial
from typing import Final
from uuid import UUID

import orjson

from mcphost.audit.records import ANSWER_REFUSED
from mcphost.calls import questions
from mcphost.calls.questions import Taken
from mcphost.calls.states import QuestionState
from mcphost.feed.nodes import heartbeat
from mcphost.protocol.legacy.opening import LegacyResponse
from mcphost.runtime.call import Principal
from mcphost.sealing.tokens import Purpose, SealError
from mcphost.serving import opening
from mcphost.serving.hop import in_database
from mcphost.serving.incoming import Session
from mcphost.serving.legacy import adoption, keeping, pinging
from mcphost.serving.legacy.asking import place_of
from mcphost.serving.legacy.refusals import refuse

NOT_ASKED: Final = "not-asked"
FOREIGN: Final = "foreign"
ANSWERED: Final = "answered"
LATE: Final = "late"


async def take(session: Session, principal: Principal, response: LegacyResponse) -> None:
    """Keep the answer for the call that waits for it, and tell the process that has it.

    What is committed when this returns is not lost. Raises what the database raises.
    """
    if pinging.is_answer(response.id):
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
    taken = await in_database(_take, session, question, _said(response))
    if taken is not None and taken.owner != heartbeat.id:
        await adoption.adopt(id=taken.call)
    if taken is None:
        found = await in_database(questions.find, question, session.id)
        if found is None:
            await refused(NOT_ASKED)
        else:
            reason = ANSWERED if found.state is QuestionState.ANSWERED else LATE
            await refused(reason, found.call, {"key": found.key})


async def _opened(session: Session, id: str | int) -> tuple[UUID, UUID]:
    """The question that a response names, and whose it is. Raises SealError."""
    payload = await opening.unseal(Purpose.REQUEST_ID, session.tenant, str(id))
    return UUID(bytes=payload[:16]), UUID(bytes=payload[16:])


def _said(response: LegacyResponse) -> bytes:
    if response.error is not None:
        return orjson.dumps({"error": response.error})
    return orjson.dumps({"result": response.result})


def _take(session: Session, question: UUID, said: bytes) -> Taken | None:
    sealed = keeping.seal(session.tenant, place_of(question), said)
    return questions.answer(question, session.id, sealed)
