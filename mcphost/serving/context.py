"""An authenticated request, the round that it runs, and the state from which the round resumes."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from mcphost.audit.records import Record
from mcphost.audit.redaction import Redactor
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.protocol.exchange import Exchange
from mcphost.protocol.headers import Headers
from mcphost.protocol.json_values import digest
from mcphost.runtime.call import Call, Client, Delivery, Principal, PrincipalKind
from mcphost.runtime.journal import EMPTY, Answer, Journal
from mcphost.runtime.program import Program, TaskSupport
from mcphost.serving.replies import Delivered
from mcphost.serving.request_state import RequestState, StateBinding, bound
from mcphost.tenants.selectors import TenantSnapshot


class TakenAnswer(NamedTuple):
    """An input response of this request, and the method of its input request (empty if unasked)."""

    key: str
    method: str
    answer: Answer


class Resumed(NamedTuple):
    """The state and input responses of a request. Without a state it begins a new call.

    `sealed_by` is the id of the key that sealed the state. `carried` are the ids of recorded values
    that were loaded from the state's parts.
    """

    state: RequestState | None
    journal: Journal
    responses: tuple[TakenAnswer, ...]
    sealed_by: str = ""
    carried: frozenset[str] = frozenset()

    @property
    def digest(self) -> str:
        """A digest of the input responses: the same responses to the same questions are a retry.

        It includes the questions, because another version of a tool may put another question under
        the same key and claim number.
        """
        return digest(
            {
                response.key: [response.answer.question, response.answer.result]
                for response in self.responses
            }
        )

    @property
    def goes_on(self) -> bool:
        """Whether the round goes beyond the state: it has input responses, or the state requested
        none. Otherwise it only asks again."""
        return self.state is None or not self.state.input_requests or bool(self.responses)

    @property
    def claim(self) -> int:
        """The number under which this round is claimed, if it is: 1 for a call's first round."""
        return 1 if self.state is None else self.state.claim


FRESH = Resumed(None, EMPTY, ())


class RoundEnding(NamedTuple):
    """The end of a round: the records to commit before its reply is sent. `turn` is None for a request
    that runs no program. `after_commit` is called once the input requests of the round are stored."""

    records: Sequence[Record]
    turn: "Turn | None" = None
    after_commit: Callable[[], object] = lambda: None


class OwnedCall(Protocol):
    """A call that this process owns: no other process starts or ends a round of it.

    `resumed` is the state from which the round resumes. `uncertain`: the call's first round was
    started by another process, and its outcome is not known. `movable`: the client can find the
    call again on another process.
    """

    @property
    def delivery(self) -> Delivery: ...
    @property
    def call(self) -> UUID: ...
    @property
    def resumed(self) -> Resumed: ...
    @property
    def uncertain(self) -> bool: ...

    @property
    def movable(self) -> bool: ...

    def close_stream(self) -> None:
        """End the response, so that the client reconnects for further messages, if it can."""

    async def start(self, records: Sequence[Record]) -> None:
        """Start the round, in one commit with `records`.

        Raises SupersededError, and writes nothing, when this process no longer owns the call;
        RecordLostError and RecordRefusedError as the writer does.
        """

    async def conclude(self, delivered: Delivered, ending: RoundEnding) -> None:
        """End the round: commit the records of `ending` before its reply is sent.

        On a stream they are committed together with the reply's messages, later than this returns.
        Raises RecordLostError and RecordRefusedError.
        """


class Quota(NamedTuple):
    """The limits of a credential, in addition to those of its tenant. None is no limit."""

    calls_per_minute: int | None = None
    concurrent_calls: int | None = None


NO_QUOTA = Quota()


class ClientSession(NamedTuple):
    """A session of a client of a session-based revision, as its row was when it was read.

    `principal_key` is the principal to which it is bound (`serving.request_state.principal_key`; for an anonymous
    session the session itself). `log_level` is empty if the client has set none. `holder` is a
    digest of the caller whose sessions are counted together. It ends at `expires_at` at the latest,
    but for a call that is in progress then.
    """

    id: UUID
    tenant: UUID
    principal_key: str
    revision: str
    client: Client
    log_level: str
    expires_at: datetime
    holder: str = ""


class Incoming(NamedTuple):
    """An authenticated request of one tenant.

    `http_request_id` is the id of this HTTP request in the records and in the log; `source` is the peer's address; `size` is
    the body's length in bytes. `session` is set if the request belongs to one; `owned_call` if its call
    may outlast the request.
    """

    http_request_id: UUID
    exchange: Exchange
    headers: Headers
    principal: Principal
    tenant: TenantSnapshot
    quota: Quota
    source: str
    size: int
    trace_id: str
    session: ClientSession | None = None
    owned_call: OwnedCall | None = None


class RedactsResults(Protocol):
    """Removes from a method's result what must not be recorded."""

    def redact(self, result: Mapping[str, Any]) -> Mapping[str, Any]: ...


class RunnablePrimitive(Protocol):
    """The attributes of a tool, prompt, resource or template that a round needs.

    `read_only`: running it changes nothing, so its start need not be recorded. `time_limit` is in
    seconds, None for the platform's. The others are as in `catalogue.snapshots.Snapshot`.
    """

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def primitive_type(self) -> PrimitiveType: ...
    @property
    def version(self) -> str: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def time_limit(self) -> float | None: ...
    @property
    def requires(self) -> tuple[str, ...]: ...
    @property
    def answer_within(self) -> float | None: ...
    @property
    def claims(self) -> bool: ...
    @property
    def unasked(self) -> bool: ...
    @property
    def missing_function(self) -> str: ...
    @property
    def task_support(self) -> TaskSupport: ...
    @property
    def retries(self) -> int: ...
    @property
    def program(self) -> Program: ...
    @property
    def input_redactor(self) -> Redactor: ...
    @property
    def output_redactor(self) -> RedactsResults: ...


class TaskMode(Enum):
    """When a call becomes a task. Decided once, when its turn is made.

    `NEVER`: it does not, or is one already. `IF_SLOW`: when the round takes long, finds no thread, or
    asks too often. `AT_ONCE`: before the program runs. `INSTEAD_OF_REFUSAL`: before it runs too, because it
    would be refused here now.
    """

    NEVER = "never"
    IF_SLOW = "if slow"
    AT_ONCE = "at once"
    INSTEAD_OF_REFUSAL = "instead of refusal"

    def __init__(self, mode: str) -> None:  # once, because every call asks for both
        self.possible = mode != "never"
        self.at_once = mode in ("at once", "instead of refusal")


class Turn(NamedTuple):
    """One round: its request, primitive, call and journal.

    `resumed` is the state from which it resumes; FRESH for the first request of a call. `task`: when
    the call becomes a task.
    """

    incoming: Incoming
    primitive: RunnablePrimitive
    call: Call
    journal: Journal
    resumed: Resumed = FRESH
    task: TaskMode = TaskMode.NEVER

    @property
    def facts(self) -> dict[str, str]:
        """What tells the round from others in the log."""
        call = self.call
        return {"primitive": self.primitive.name, "method": call.method, "call": str(call.id)}

    @property
    def bound(self) -> StateBinding:
        """The binding of this call's states."""
        call = self.call
        return bound(call.principal, call.method, call.target, call.arguments)

    @property
    def attempt(self) -> int:
        """The number of this HTTP request of a stateless call, from 1."""
        state = self.resumed.state
        return 1 if state is None else state.requests_made + 1

    @property
    def is_claimed(self) -> bool:
        """Whether this round must be claimed, so that its input responses take effect only once.

        That depends on the program and on the caller. An owned call belongs to one process anyway.
        """
        if self.incoming.owned_call is not None or self.resumed.state is None:
            return False
        # An anonymous caller's state can be used without a credential, so it is valid only once.
        return self.primitive.claims or self.call.principal.kind is PrincipalKind.ANONYMOUS

    @property
    def next_claim(self) -> int:
        """The claim number of the state that this round may end with."""
        return self.resumed.claim + self.resumed.goes_on

    def answer_by(self, seconds: float, now: float) -> float:
        """The expiry of this round's input requests, in seconds since 1970.

        Requests that are only repeated keep their expiry. So states that share a claim number
        expire together, and none of them outlives the claim of another's responses.
        """
        state = self.resumed.state
        return now + seconds if state is None or self.resumed.goes_on else state.expires_at

    @property
    def was_shed(self) -> bool:
        """Whether a process has sent the call to another before."""
        state = self.resumed.state
        return state is not None and state.shed
