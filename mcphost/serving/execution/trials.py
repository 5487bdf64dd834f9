"""Trials: a user who may edit tools runs one, from the console or the API, before clients can. The
tool need not be saved.

A trial runs in rounds, by the same code as a call of a client, and plays a client of any revision,
with the capabilities that the user chose. Nothing is held between rounds: the caller (a page of the
console, or a client of the API) carries the definition, the arguments and the sealed state. It is
sealed for a purpose of its own, so a trial's state is never accepted as a `requestState`, or the other
way round.
"""

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from uuid import UUID

import orjson
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.utils import timezone

from mcphost.audit import call_list
from mcphost.audit.records import Actor, new_id
from mcphost.catalogue import selectors as catalogue
from mcphost.catalogue.drafts import compile_draft
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.rows import PrimitiveRow
from mcphost.catalogue.snapshots import ToolSnapshot
from mcphost.catalogue.states import PrimitiveState, PrimitiveVerb
from mcphost.identity.selectors import person_in
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.protocol import messages
from mcphost.protocol.errors import INTERNAL_ERROR, ProtocolError
from mcphost.protocol.exchange import Exchange, Meta
from mcphost.protocol.headers import Headers
from mcphost.protocol.params import check_responses
from mcphost.runtime.call import Call, CallUser, Client, Delivery, Principal, PrincipalKind
from mcphost.runtime.journal import EMPTY, FAILED, Answer, Journal
from mcphost.runtime.outcomes import Failed, InputRequired, Outcome
from mcphost.runtime.ports import Ports
from mcphost.runtime.program import Program
from mcphost.sealing.tokens import Purpose, SealError, key_id
from mcphost.serving import limits, request_state, sealing
from mcphost.serving.context import NO_QUOTA, Incoming, Resumed, TakenAnswer, TaskMode, Turn
from mcphost.serving.database import in_database
from mcphost.serving.execution import cancelling, commits, resume, rounds, stored_tasks
from mcphost.serving.execution.calls import RoundPorts
from mcphost.serving.execution.links import warm
from mcphost.serving.execution.played_client import (
    INFO,
    LEVEL,
    NAME,
    TOKEN,
    VERSION,
    Json,
    PlayedClient,
)
from mcphost.serving.first_use import with_shapes
from mcphost.serving.options import options
from mcphost.serving.replies import Answered, Asking, Reply, server_info
from mcphost.serving.request_state import InvalidStateError, RequestState
from mcphost.tenants import selectors as tenants
from mcphost.tenants.access import Person, allowed
from mcphost.tenants.roles import COMMON_SCOPES, Permission
from mcphost.tenants.selectors import TenantSnapshot

MAX_SECONDS: Final = 60.0
"""The longest time limit of a round: the operator's browser waits for it."""
PATIENCE_SECONDS: Final = 30.0
"""How much longer a round may take that waits for a link, which its time limit does not count."""
MAX_MESSAGES: Final = 200
MAX_BYTES: Final = 256 * 1024
DEFINING: Final = (
    "config",
    "kind",
    "title",
    "description",
    "scopes",
    "time_limit_seconds",
    "answer_within_seconds",
)
"""The fields of a tool, besides its name, that a trial runs; icons say nothing about a call."""
CLIENT, SERVER = "client", "server"
"""The senders of messages."""
DELETED: Final = "The tool was deleted."
ROLLED_BACK: Final = "Another version of the tool is served."
FILE_APPLIED: Final = "A file was applied that changes the tool."
ENDED_BY: Final[Mapping[PrimitiveVerb, str]] = MappingProxyType(
    {
        PrimitiveVerb.DISABLE: "The tool was disabled.",
        PrimitiveVerb.ARCHIVE: "The tool was archived.",
    }
)
"""The changes of state that end the trials of a tool, and the reason that these are given."""
REFUSED: Final = "The person who tries the tool refused the request."
_ENDING: Final = frozenset({PrimitiveState.DISABLED, PrimitiveState.ARCHIVED})
"""Once a tool is in one of these states, its open calls and trials accept no more responses."""
_CALLED_FROM = " in <module>"
"""The end of the line of a traceback that names no code of the author's."""


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """The request to run one round of a trial. `primitive` is the tool's own id, if it is saved.

    `state` is that of the round before, empty for the first one. `responses` are by key, as a client
    sends them, or REFUSAL. `host` is the Host of the operator's request, `source` its address.
    `tool_state` is that of the first round (`TrialResult`). `client` is the same in all rounds.
    """

    operator: Person
    tenant: UUID
    definition: PrimitiveFields
    arguments: Mapping[str, Any]
    host: str = ""
    source: str = ""
    primitive: UUID | None = None
    state: str = ""
    responses: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tool_state: str = ""
    client: PlayedClient = field(default_factory=PlayedClient)


class TrialMessage(NamedTuple):
    """A message between the played client and the server. `at` is in seconds since the round began."""

    sender: str
    at: float
    body: Mapping[str, Any]


class SealedStateFacts(NamedTuple):
    """The sealed state of a trial: its size in bytes, the id of its key, and its expiry in seconds since 1970."""

    size: int
    key: str
    expires_at: float


class TrialEndedError(Exception):
    """The trial may not go on, because its tool has changed: the text says how."""


REFUSAL: Final[Mapping[str, Any]] = MappingProxyType({"error": {"message": REFUSED}})


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What one round of a trial returned: `result`, or `requests` with `state`, or `error`.

    `requests` are as on the wire; `invalid` says by key why an answer was not accepted. `detail` is
    where and why the tool failed. `received` are the messages that the played client would receive:
    notifications, then what ends the round. `dropped` counts the notifications that were too many.
    `tool_state` is the state of the saved tool when the trial began, for the next round. `task` says
    when a real client's call would become a task; a trial never does. `exchanged` are all messages of
    the round, both ways, redacted as records are. `began` is when the round began, in seconds since
    1970. `sealed` describes `state`. `is_recorded` is false if the call was refused before anything was
    recorded.
    """

    call: UUID
    number: int
    seconds: float
    result: Mapping[str, Any] | None = None
    requests: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    state: str = ""
    error: ProtocolError | None = None
    invalid: Mapping[str, str] = field(default_factory=dict)
    detail: str = ""
    received: Sequence[Mapping[str, Any]] = ()
    dropped: int = 0
    tool_state: str = ""
    task: TaskMode = TaskMode.NEVER
    exchanged: Sequence[TrialMessage] = ()
    began: float = 0.0
    sealed: SealedStateFacts | None = None
    is_recorded: bool = True


class _Watched:
    """A program that keeps the outcome of its round."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self.outcome: Outcome | None = None

    async def advance(self, call: Call, journal: Journal, ports: Ports) -> Outcome:
        self.outcome = await self._program.advance(call, journal, ports)
        return self.outcome


class _Received:
    """The notifications of a round, as a client would receive them."""

    closed = False

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.times: list[float] = []
        self.dropped = 0
        self._bytes = 0

    def send(self, message: bytes) -> None:
        self._bytes += len(message)
        if len(self.messages) < MAX_MESSAGES and self._bytes <= MAX_BYTES:
            self.messages.append(message)
            self.times.append(time.perf_counter())
        else:
            self.dropped += 1


async def run(trial: TrialRequest) -> TrialResult:
    """Run a round of a trial and record it; what a client would be refused is in `error`.

    Raises PermissionDenied if the operator may not edit this tenant's tools now, InvalidPrimitiveError
    if the definition cannot be published, TrialEndedError if the tool was disabled, archived or deleted since
    the trial began.
    """
    prepared = await in_database(_prepared, trial)
    tenant, tool = prepared.tenant, prepared.tool
    watched, stream = _Watched(tool.program), _Received()
    seconds = min(tool.time_limit or options().tool_seconds, MAX_SECONDS)
    turn = _turn(trial, prepared.user, tenant, replace(tool, program=watched, time_limit=seconds))
    began, began_at = time.perf_counter(), time.time()
    reply, error, received = None, None, list[Json]()
    try:
        async with asyncio.timeout(MAX_SECONDS + PATIENCE_SECONDS):
            stored_tasks.check_task_support(turn.incoming, tool.name, tool.task_support)
            limits.check_size(turn.incoming, tool.input_validator, trial.arguments)
            await warm(tenant.id)
            turn = await _resumed(turn, trial)
            reply = await _run_limited(turn, stream)
        server = server_info(tenant.title, "")
        received = list(trial.client.receives(turn.call.round, reply, server))
    except ProtocolError as refused:
        error = refused
    except TimeoutError:
        error = ProtocolError(INTERNAL_ERROR, "The trial was ended: it waited for too long.")
    if error is not None:
        answer = trial.client.error(turn.call.round, error)
        received = [orjson.loads(messages.error_response(answer))]
    seconds = time.perf_counter() - began
    return TrialResult(
        call=turn.call.id,
        number=turn.call.round,
        seconds=seconds,
        result=reply.result if isinstance(reply, Answered) else None,
        requests=reply.requests if isinstance(reply, Asking) else {},
        state=reply.state if isinstance(reply, Asking) else "",
        error=error,
        invalid=watched.outcome.invalid if isinstance(watched.outcome, InputRequired) else {},
        detail=_detail(watched.outcome, tool),
        received=[*map(orjson.loads, stream.messages), *received],
        dropped=stream.dropped,
        tool_state=prepared.tool_state,
        task=stored_tasks.requested_mode(turn.incoming, tool.task_support),
        exchanged=[
            *_sent(trial, turn, tool),
            *(
                TrialMessage(SERVER, at - began, orjson.loads(message))
                for message, at in zip(stream.messages, stream.times, strict=True)
            ),
            *(TrialMessage(SERVER, seconds, _redacted(tool, message)) for message in received),
        ],
        began=began_at,
        sealed=await _described(turn, reply),
        is_recorded=reply is not None or bool(trial.state),
    )


def end(call: UUID, tenant: UUID, reason: str, actor: Actor) -> None:
    """End a trial that waits for its operator, and record why; nothing if it has ended."""
    cancelling.cancel(call, tenant, reason, actor)


def end_all(tenant: UUID, tools: Iterable[str], reason: str, actor: Actor) -> None:
    """End the trials that wait for their operators, of tools that are changed or removed now; in a
    transaction, when it is committed."""

    def end_each() -> None:
        for tool in names:
            for call in call_list.open_trials(tenant, tool, timezone.now()):
                end(call, tenant, reason, actor)

    names = list(tools)
    transaction.on_commit(end_each)


def end_of(row: PrimitiveRow, reason: str, actor: Actor) -> None:
    """End the trials of a primitive as `end_all` does; only tools have any."""
    if row.primitive_type is PrimitiveType.TOOL:
        end_all(row.tenant_id, [row.name], reason, actor)


class _Prepared(NamedTuple):
    tenant: TenantSnapshot
    tool: ToolSnapshot
    tool_state: str
    user: CallUser | None


def _prepared(trial: TrialRequest) -> _Prepared:
    tenant = tenants.tenant(trial.tenant)
    operator = User.objects.filter(pk=trial.operator.pk or 0).first()  # as the account is now
    if tenant is None or operator is None or not allowed(operator, tenant, Permission.EDIT_TOOLS):
        raise PermissionDenied
    tool_state = _tool_state(trial)
    tool = compile_draft(tenant.id, trial.definition, trial.primitive)
    return _Prepared(tenant, tool, tool_state, person_in(tenant.id, operator.pk))


def _tool_state(trial: TrialRequest) -> str:
    """The state of the saved tool when the trial began; empty if it is not saved.

    A disabled or archived tool can be tried on purpose. So a trial of one goes on only if the tool has
    not changed at all since: it may have been enabled, and disabled again. A trial whose round ran
    while another version was served again was not open then, and ends here. Raises TrialEndedError.
    """
    if trial.primitive is None:
        return ""
    row = catalogue.primitive(trial.primitive)
    now = "" if row is None else f"{row.state} {row.updated_at.isoformat()} {row.version_number}"
    if not trial.state:
        return now
    if row is None:
        raise TrialEndedError(DELETED)
    if row.state in _ENDING and now != trial.tool_state:
        raise TrialEndedError(f"The tool was {row.state.value}.")
    served_before = trial.tool_state.rpartition(" ")[2]
    # A trial that began before an upgrade does not have the number.
    if served_before.isdecimal() and row.version_number < int(served_before):
        raise TrialEndedError(ROLLED_BACK)
    return trial.tool_state


def _turn(
    trial: TrialRequest, user: CallUser | None, tenant: TenantSnapshot, tool: ToolSnapshot
) -> Turn:
    operator = trial.operator
    principal = Principal(
        PrincipalKind.PERSON,
        tenant.id,
        str(operator.pk),
        operator.get_username(),
        COMMON_SCOPES | tool.scopes,
        operator.pk,
        user=user,
    )
    client = trial.client
    params = client.params(tool.name, trial.arguments, tool.task_support)
    meta = Meta(TOKEN, LEVEL, INFO, client.capabilities)
    exchange = Exchange(1, "tools/call", params, meta, client.era, client.revision)
    host = [(b"host", trial.host.encode())] if trial.host else []
    incoming = Incoming(
        http_request_id=new_id(),
        exchange=exchange,
        headers=Headers(host),
        principal=principal,
        tenant=tenant,
        quota=NO_QUOTA,
        source=trial.source,
        size=len(orjson.dumps(trial.arguments)),
        trace_id="",
    )
    call = Call(
        id=new_id(),
        tenant=tenant.id,
        principal=principal,
        method=exchange.method,
        target=tool.name,
        arguments=trial.arguments,
        client=Client(NAME, VERSION, client.capabilities),
        revision=client.revision,
        era=client.era,
        delivery=Delivery.PLAYGROUND,
        version=tool.version,
    )
    return Turn(incoming, tool, call, EMPTY)


def _sent(trial: TrialRequest, turn: Turn, tool: ToolSnapshot) -> Iterator[TrialMessage]:
    """What the client sends for this round; for its first one in a session, how it begins that."""
    client, round = trial.client, turn.call.round
    arguments = tool.input_redactor.redact(trial.arguments)
    params = client.params(tool.name, arguments, tool.task_support)
    if trial.state:
        for message in client.responses(round, params, trial.responses):
            yield TrialMessage(CLIENT, 0.0, message)
        return
    begun = client.initialization(server_info(turn.incoming.tenant.title, ""))
    if begun is not None:
        yield TrialMessage(CLIENT, 0.0, begun[0])
        yield TrialMessage(SERVER, 0.0, begun[1])
    yield TrialMessage(CLIENT, 0.0, client.request(round, params))


def _redacted(tool: ToolSnapshot, message: Json) -> Json:
    result = message.get("result")
    if not isinstance(result, Mapping) or "content" not in result:
        return message
    return {**message, "result": tool.output_redactor.redact(result)}


async def _described(turn: Turn, reply: Reply | None) -> SealedStateFacts | None:
    if not isinstance(reply, Asking):
        return None
    state = await _opened(turn, reply.state)
    return SealedStateFacts(len(reply.state), key_id(reply.state), state.expires_at)


async def _resumed(turn: Turn, trial: TrialRequest) -> Turn:
    """The round after the state, if there is one. Raises ProtocolError."""
    if not trial.state:
        return turn
    responses = {k: v for k, v in trial.responses.items() if v is not REFUSAL}
    await with_shapes(check_responses, responses)
    try:
        state = await _opened(turn, trial.state)
    except InvalidStateError as error:
        await commits.refusal(turn, error.reason, error.call)
        raise resume.invalid_state() from None
    answers = tuple(_answers(state, trial.responses))
    journal = state.journal
    for answer in answers:
        journal = journal.with_answer(answer.key, answer.answer)
    resumed = Resumed(state, journal, answers, key_id(trial.state))
    call = turn.call._replace(id=state.call, round=state.round + 1)
    return turn._replace(call=call, journal=journal, resumed=resumed)


async def _opened(turn: Turn, token: str) -> RequestState:
    """The state, if it is this operator's, of this definition and of these arguments.

    Raises InvalidStateError.
    """
    try:
        written = await sealing.unseal(Purpose.TRIAL, turn.call.tenant, token)
    except SealError as error:
        raise InvalidStateError(error.reason) from None
    state = request_state.read(written)
    request_state.check(state, time.time(), turn.bound)
    if state.version != turn.call.version:
        raise InvalidStateError("of another definition", state.call)
    return state


def _answers(
    state: RequestState, responses: Mapping[str, Mapping[str, Any]]
) -> Iterator[TakenAnswer]:
    for key, question in state.input_requests.items():
        response = responses.get(key)
        if response is None or state.journal.answer(key, question.question) is not None:
            continue
        if response is REFUSAL:
            refused = {"message": REFUSED}
            answer = Answer(question.question, state.version, refused, FAILED)
        else:
            resume.check_kind(key, question.method, response)
            answer = Answer(question.question, state.version, response)
        yield TakenAnswer(key, question.method, answer)


async def _run_limited(turn: Turn, stream: _Received) -> Reply:
    """Run the round within the tenant's limits. Raises ProtocolError."""
    if not limits.are_set(turn.incoming):
        return await rounds.run(turn, RoundPorts(turn, stream))
    limits.count_call(turn.incoming)
    with limits.occupy(turn.incoming):
        return await rounds.run(turn, RoundPorts(turn, stream))


def _detail(outcome: Outcome | None, tool: ToolSnapshot) -> str:
    """Where and why the tool failed. Of a function of the platform only its message is shown."""
    if not isinstance(outcome, Failed) or tool.kind == "python":
        return ""
    lines = outcome.error.detail.splitlines()
    return "\n".join(line for line in lines if not line.endswith(_CALLED_FROM))
