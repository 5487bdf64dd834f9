"""One call of the interpreter from its first leg to its end, and what has to hold on the way."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.mcp import Reply, begun
from tests.rounds.client_steps import Asker, done, state_of
from tests.rounds.conftest import module
from tests.rounds.programs import Leg, Program

MOST_LEGS = 11
PLAIN = Leg()


@dataclass
class Effects:
    """What steps did in a call, and by which idempotency keys."""

    seen: list[list[Any]] = field(default_factory=list)

    def counted(self) -> Counter[str]:
        """How often each step ran with each argument."""
        return Counter(json.dumps(line[:3]) for line in self.seen)

    def key_sets(self) -> dict[str, set[str]]:
        """The idempotency keys under which each step ran with each argument."""
        found: dict[str, set[str]] = {}
        for line in self.seen:
            found.setdefault(json.dumps(line[:3]), set()).add(line[3])
        return found


class Journey:
    """Goes the way that a client's legs say, and then straight on to the end."""

    def __init__(self, asker: Asker, set_shed: Callable[[bool], None]) -> None:
        self._asker = asker
        self._set_shed = set_shed
        self._program: Program = asker.params["arguments"]["program"]
        self._recorded: dict[str | None, frozenset[str]] = {None: frozenset()}
        self.effects = Effects()

    async def go(self, legs: Sequence[Leg], rest: Leg = PLAIN) -> str:
        """The text of the end. When the legs are used up, all others are like `rest`."""
        reply: Reply | None = None
        for leg in (*legs, *[rest] * MOST_LEGS):
            reply = await self._leg(reply, leg)
            if reply.result["resultType"] == "complete":
                return done(reply)
        raise AssertionError("it does not come to an end")

    async def _leg(self, before: Reply | None, leg: Leg) -> Reply:
        state = None if before is None else state_of(before)
        asked = [] if before is None else list(before.result.get("inputRequests", ()))
        answers = leg.answers(asked, self._program)
        fields: dict[str, Any] = {"inputResponses": answers} if answers or state else {}
        if state is not None:
            fields["requestState"] = state
        if state is None:
            leg = replace(leg, kill=0, again=False)
        if leg.kill:
            killed = await self._killed(fields, leg.kill)
            self._look(state, killed)
        self._set_shed(leg.shed)
        reply, ran = await self._sent(fields)
        self._set_shed(False)
        self._look(state, ran)
        if leg.again:
            reply, ran_again = await self._sent(fields)
            self._look(state, ran_again)
            ran = ran_again or ran  # of what is done once only, the outcome was kept
        if reply.result["resultType"] == "input_required":
            known = self._recorded[state] | {line[3] for line in ran}
            self._recorded[state_of(reply)] = known
        return reply

    async def _sent(self, fields: Mapping[str, Any]) -> tuple[Reply, list[list[Any]]]:
        mark = len(module("interpreter").effects)
        reply = await self._asker.leg(**fields)
        return reply, module("interpreter").effects[mark:]

    async def _killed(self, fields: Mapping[str, Any], after: int) -> list[list[Any]]:
        """Have the round end between an effect and its record; it may be over before."""
        interpreter: Any = module("interpreter")
        mark, left, reached = len(interpreter.effects), after, asyncio.Event()

        async def after_effect() -> None:
            nonlocal left
            left -= 1
            if left <= 0:
                reached.set()
                await asyncio.Event().wait()

        interpreter.after_effect = after_effect
        try:
            body = self._asker.message(**fields)
            async with begun(self._asker.tenant, body, self._asker.token) as exchange:
                waiting = asyncio.create_task(reached.wait())
                await asyncio.wait(
                    {waiting, exchange.task}, return_when=asyncio.FIRST_COMPLETED, timeout=10
                )
                waiting.cancel()
        finally:
            interpreter.after_effect = interpreter._nothing
        ran: list[list[Any]] = interpreter.effects[mark:]
        return ran

    def _look(self, state: str | None, ran: list[list[Any]]) -> None:
        """No step runs whose result was in the journal, and no two under one key in one round."""
        names = [line[3] for line in ran]
        assert not self._recorded[state] & set(names), "a recorded step ran again"
        assert len(names) == len(set(names)), "two steps have one idempotency key"
        self.effects.seen += ran
