"""Trial runs of a tool, prompt or resource in tests: all its rounds, with prepared answers.

tried = await try_out(deploy, {"service": "shop"}, {"confirm": accept(deploy=True)})
assert tried.text == "shop is deployed."
assert tried.asked == (("confirm",),)
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID, uuid4

import orjson

from mcphost.kinds.functions.program import FunctionProgram
from mcphost.kinds.python.function import inspect_function
from mcphost.protocol.revisions import REVISION, Era
from mcphost.runtime.call import Call, CallUser, Client, Delivery, Principal, PrincipalKind
from mcphost.runtime.journal import EMPTY, Answer, as_json, from_json
from mcphost.runtime.memory import MemoryLinks, MemoryStore
from mcphost.runtime.outcomes import Complete, Deferred, InputRequired, Outcome, Yielded
from mcphost.runtime.ports import FixedPorts, Ports
from mcphost.runtime.program import Program
from mcphost.runtime.threads import ToolThreads
from mcphost.sdk.marking import ATTRIBUTE

EVERYTHING: Final[Mapping[str, Any]] = MappingProxyType(
    {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
)
"""The capabilities of a client that supports every question."""
MAX_ROUNDS: Final = 8
_TENANT = UUID(int=1)
USER: Final = CallUser(UUID(int=2), "Ada")
"""The person behind a trial, unless it says otherwise."""

DECLINE: Final[Mapping[str, Any]] = MappingProxyType({"action": "decline"})
CANCEL: Final[Mapping[str, Any]] = MappingProxyType({"action": "cancel"})

Answers = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Tried:
    """The outcome of a trial, and the keys of the questions that each round asked."""

    outcome: Outcome
    asked: tuple[tuple[str, ...], ...]

    @property
    def text(self) -> str:
        """The first text of the result. Raises TypeError if the trial did not complete."""
        if not isinstance(self.outcome, Complete):
            raise TypeError(f"it did not complete: {self.outcome}")
        text: str = self.outcome.result["content"][0]["text"]
        return text


def accept(**content: Any) -> Mapping[str, Any]:
    """Build the answer of a user who fills in a form."""
    return {"action": "accept", "content": content}


def model_answer(text: str) -> Mapping[str, Any]:
    """Build the answer of a model."""
    content = {"type": "text", "text": text}
    return {"role": "assistant", "content": content, "model": "trial", "stopReason": "endTurn"}


async def try_out(
    function: Callable[..., Any],
    arguments: Mapping[str, Any] | None = None,
    answers: Answers = MappingProxyType({}),
    *,
    ports: Ports | None = None,
    user: CallUser | None = USER,
) -> Tried:
    """Run a function that is marked as a tool, prompt or resource until it ends.

    `answers` has for each key the result that a client would send. The outcome is InputRequired if
    an answer is missing, or after eight rounds. `user` is the person behind the call, None for none. Every round gets only what a request state can
    carry. From `become_task` on, the trial goes on as a task, unless `ports` say otherwise (see
    `in_memory`).
    """
    definition = getattr(function, ATTRIBUTE)
    program = FunctionProgram(inspect_function(f"trial.{function.__name__}", function, definition))
    return await run_through(program, a_call(arguments, user=user), answers, ports or in_memory())


async def run_through(program: Program, call: Call, answers: Answers, ports: Ports) -> Tried:
    """As `try_out`, for any program."""
    asked_keys: list[tuple[str, ...]] = []
    outcome = await program.advance(call, EMPTY, ports)
    while isinstance(outcome, InputRequired | Yielded | Deferred):
        requests = outcome.requests if isinstance(outcome, InputRequired) else ()
        asked_keys.append(tuple(request.key for request in requests))
        delivery = Delivery.TASK if isinstance(outcome, Deferred) else call.delivery
        call = call._replace(round=call.round + 1, delivery=delivery)
        if call.round > MAX_ROUNDS or any(request.key not in answers for request in requests):
            break
        journal = outcome.journal
        for request in requests:
            answer = Answer(request.digest, call.version, dict(answers[request.key]))
            journal = journal.with_answer(request.key, answer)
        carried = from_json(orjson.loads(orjson.dumps(as_json(journal))))  # to the client and back
        outcome = await program.advance(call, carried, ports)
    return Tried(outcome, tuple(asked_keys))


def a_call(
    arguments: Mapping[str, Any] | None = None,
    capabilities: Mapping[str, Any] = EVERYTHING,
    *,
    user: CallUser | None = USER,
) -> Call:
    """Build a call by a client with these capabilities."""
    return Call(
        id=uuid4(),
        tenant=_TENANT,
        principal=Principal(PrincipalKind.TOKEN, _TENANT, id="trial", label="A trial", user=user),
        method="tools/call",
        target="trial",
        arguments=arguments or {},
        client=Client("trial", "1", capabilities),
        revision=REVISION,
        era=Era.MODERN,
        delivery=Delivery.MODERN,
    )


def in_memory(done: Collection[str] = (), *, tasks: bool = True) -> Ports:
    """Return ports without effects outside of the trial.

    `done` are the keys of the links that were confirmed. `tasks`: whether `become_task` makes the
    trial a task; False is as for a client that cannot follow tasks.
    """
    return FixedPorts(
        threads=ToolThreads(2),
        store=MemoryStore(),
        user_store=MemoryStore(),
        links=MemoryLinks(done),
        may_defer=lambda: tasks,
    )
