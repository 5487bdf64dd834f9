"""Calls that ask: in sessions on the stream of the call, else in further requests of the client."""

from collections.abc import Mapping
from typing import Any

from tests.equivalence.run import EVERYTHING, LEGACY, Run, Scenario, called
from tests.legacy import Posted, calling
from tests.mcp import Reply

RED = {"colour": {"action": "accept", "content": {"colour": "red"}}}
BLUE = {"colour": {"action": "accept", "content": {"colour": "blue"}}}
MAUVE = {"colour": {"action": "accept", "content": {"colour": "mauve"}}}
DECLINE = {"colour": {"action": "decline"}}
CANCEL = {"colour": {"action": "cancel"}}
SMALL = {"size": {"action": "accept", "content": {"size": 3}}}
PAINT = {"what": "a wall"}
Answers = Mapping[str, Any]


async def first(run: Run, tool: str, arguments: Any = None) -> str:
    reply = await run.call(tool, arguments, capabilities=EVERYTHING)
    run.clock.advance(1)
    state: str = reply.result["requestState"]
    return state


async def retry(
    run: Run, tool: str, state: str, answers: Answers | None, arguments: Any = None
) -> Reply:
    fields: dict[str, Any] = {"requestState": state}
    if answers is not None:
        fields["inputResponses"] = answers
    return await run.call(tool, arguments, fields=fields, capabilities=EVERYTHING)


def _answered(tool: str, *answers: Answers, arguments: Any = None) -> Any:
    async def act(run: Run) -> None:
        run.count_at_end()
        state = await first(run, tool, arguments)
        for given in answers:
            reply = await retry(run, tool, state, given, arguments)
            state = reply.result.get("requestState", "") if "result" in reply.last else ""
            run.clock.advance(1)
        await run.note_effects()

    return act


async def _elsewhere(run: Run) -> None:
    state = await first(run, "asks_and_acts", PAINT)
    await retry(run, "asks_and_acts", state, RED, {"what": "a door"})
    await retry(run, "asks", state, RED)
    fields = {"requestState": state, "inputResponses": RED}
    body = called("asks_and_acts", PAINT, fields=fields, capabilities=EVERYTHING)
    await run.post(body, run.cast.member.mcp_token)
    await run.post(body, None, tenant="commons")
    await run.note_effects()


async def _expired(run: Run) -> None:
    state = await first(run, "asks_and_acts", PAINT)
    run.clock.advance(7200)
    await retry(run, "asks_and_acts", state, RED, PAINT)
    await run.note_effects()


async def _repeated(run: Run) -> None:
    state = await first(run, "asks_and_acts", PAINT)
    await retry(run, "asks_and_acts", state, RED, PAINT)
    run.clock.advance(1)
    await retry(run, "asks_and_acts", state, RED, PAINT)
    await retry(run, "asks_and_acts", state, BLUE, PAINT)
    await retry(run, "asks_and_acts", state, None, PAINT)
    await run.note_effects()


STATELESS = {
    "answered": _answered("asks", RED),
    "answered, then acting": _answered("asks_and_acts", RED, arguments=PAINT),
    "declined": _answered("asks", DECLINE),
    "cancelled": _answered("asks_and_acts", CANCEL, arguments=PAINT),
    "wrong answer, then a right one": _answered("asks_and_acts", MAUVE, RED, arguments=PAINT),
    "answer to another question": _answered("asks", {"other": RED["colour"]}),
    "no answer": _answered("asks", {}),
    "two questions": _answered("asks_twice", RED, SMALL),
    "two questions at once": _answered("asks_side_by_side", {**RED, **SMALL}),
    "page": _answered("asks_for_page", {"page": {"action": "accept"}}),
    "in a thread": _answered("asks_in_thread", RED),
    "state of another call": _elsewhere,
    "expired state": _expired,
    "repeated answers": _repeated,
}


def _in_session(tool: str, *answers: Any, arguments: Any = None) -> Any:
    async def act(run: Run) -> None:
        client = run.client(LEGACY)
        await client.ready()
        posted = client.session.exchange(calling(tool, arguments))
        for given in answers:
            await _answer(run, posted, client.session, given)
        await posted.done()
        await run.note_effects()

    return act


async def _answer(run: Run, posted: Posted, session: Any, given: Any) -> None:
    question = await posted.message()
    run.clock.advance(1)
    await session.send({"jsonrpc": "2.0", "id": question["id"], "result": given})


async def _cancelled_in_session(run: Run) -> None:
    client = run.client(LEGACY)
    await client.ready()
    posted = client.session.exchange(calling("acts_slowly"))
    await run.until_running()
    await client.session.notify("notifications/cancelled", {"requestId": 1, "reason": "enough"})
    await posted.done()
    await run.note_effects()


ACCEPT, SIZE = RED["colour"], SMALL["size"]
SESSION = {
    "answered": _in_session("asks", ACCEPT),
    "answered, then acting": _in_session("asks_and_acts", ACCEPT, arguments=PAINT),
    "declined": _in_session("asks", DECLINE["colour"]),
    "wrong answer, then a right one": _in_session(
        "asks_and_acts", MAUVE["colour"], ACCEPT, arguments=PAINT
    ),
    "two questions": _in_session("asks_twice", ACCEPT, SIZE),
    "in a thread": _in_session("asks_in_thread", ACCEPT),
    "cancelled by its client": _cancelled_in_session,
}

SCENARIOS = [
    *(Scenario(f"{name}, stateless", act) for name, act in STATELESS.items()),
    *(Scenario(f"{name}, session", act) for name, act in SESSION.items()),
]
