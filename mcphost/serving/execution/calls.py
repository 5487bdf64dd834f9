"""Run a call's request on any primitive, within the caller's limits, and return the reply."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from mcphost.audit.records import new_id
from mcphost.protocol.errors import INTERNAL_ERROR, ProtocolError
from mcphost.protocol.revisions import REVISIONS
from mcphost.runtime.call import Call, Client, Delivery
from mcphost.runtime.journal import EMPTY, Journal
from mcphost.runtime.outcomes import InputRequest
from mcphost.runtime.ports import (
    Announcer,
    Http,
    Links,
    Misuse,
    NoStore,
    Notifier,
    RoundLimits,
    Store,
    SystemClock,
    SystemRandomness,
    Threads,
)
from mcphost.runtime.program import TaskSupport
from mcphost.serving import limits, load, shutdown
from mcphost.serving.context import FRESH, Incoming, Resumed, RunnablePrimitive, TaskMode, Turn
from mcphost.serving.execution import commits, missing_functions, resume, rounds, stored_tasks
from mcphost.serving.execution.announcements import TenantAnnouncer
from mcphost.serving.execution.deliveries import (
    answer_by,
    journal_before,
    may_move,
    may_publish,
)
from mcphost.serving.execution.links import CallLinks, warm
from mcphost.serving.execution.outgoing import TenantHttp
from mcphost.serving.execution.owned_task import OwnedTask
from mcphost.serving.execution.ports import (
    NULL_NOTIFIER,
    StreamNotifier,
    TaskNotifier,
    TaskStream,
    TenantStore,
    threads,
)
from mcphost.serving.options import options
from mcphost.serving.ports import EventStream
from mcphost.serving.replies import Reply
from mcphost.serving.request_state import InvalidStateError
from mcphost.vault.sealer import is_warm

UNCERTAIN = "The server stopped while the program ran; it may have taken effect"


NO_USER: Final = "This caller is no person, so it has no store of its own."


class RoundPorts:
    """Implements `runtime.ports.Ports` for one round. Seldom used ports are made on first use."""

    __slots__ = ("_recorded", "_stream", "_task", "_turn")
    clock = SystemClock()
    randomness = SystemRandomness()

    def __init__(self, turn: Turn, stream: EventStream) -> None:
        owned_call = turn.incoming.owned_call
        self._turn = turn
        self._task = owned_call if isinstance(owned_call, OwnedTask) else None
        self._stream: EventStream = stream
        self._recorded: Callable[[], Journal] | None = None

    def journal_so_far(self) -> Journal | None:
        recorded, self._recorded = self._recorded, None
        return None if recorded is None else recorded()

    def become_task(self, task: OwnedTask) -> None:
        self._task = task
        if self._recorded is not None:  # a step has ended while the task was created
            task.remember(self._sealed(self._recorded))

    @property
    def threads(self) -> Threads:
        return threads()

    @property
    def notifier(self) -> Notifier:
        """What sends the notifications that the request opted in to, and no others.

        Progress needs a `progressToken` (spec: basic/patterns/progress), log messages a `logLevel`
        (spec: server/utilities/logging). A task of 2026-07-28 has neither: its progress is
        its status message. The progress of a session's task goes to the session's GET stream.
        """
        turn = self._turn
        meta = turn.incoming.exchange.meta
        plain: Notifier = NULL_NOTIFIER
        if meta.progress_token is not None or meta.log_level is not None:
            revision = REVISIONS.get(turn.incoming.exchange.revision)
            texts = revision is None or revision.audio
            plain = StreamNotifier(self._stream, meta.progress_token, meta.log_level, texts=texts)
        if turn.primitive.task_support is TaskSupport.NEVER:
            return plain
        token = None if turn.incoming.session is None else meta.progress_token
        return TaskNotifier(plain, lambda: self._task, token)

    @property
    def limits(self) -> RoundLimits:
        turn = self._turn
        seconds = options().tool_seconds
        if self._task is not None or turn.task.possible:
            seconds = options().tasks.round_seconds
        return RoundLimits(turn.primitive.time_limit or seconds, options().result_limit)

    @property
    def announcer(self) -> Announcer:
        return TenantAnnouncer(self._turn.call.tenant)

    @property
    def store(self) -> Store:
        return TenantStore(self._turn.call.tenant)

    @property
    def user_store(self) -> Store:
        call = self._turn.call
        user = call.principal.user
        return NoStore(NO_USER) if user is None else TenantStore(call.tenant, user.id)

    @property
    def http(self) -> Http:
        incoming = self._turn.incoming
        return TenantHttp(incoming.tenant, incoming.principal)

    @property
    def links(self) -> Links:
        stream = TaskStream(self._stream, lambda: self._task is not None)
        return CallLinks(self._turn.incoming, self._turn.call, stream)

    def reason_to_move(self) -> str:
        """Return why the call should move to another process. Only stateless calls move because of load."""
        turn = self._turn
        if shutdown.draining():
            return load.DRAIN if self._task is not None or may_move(turn) else ""
        if self._task is not None or turn.call.delivery is not Delivery.MODERN:
            return ""
        return load.reason_to_leave(turn.incoming) if may_move(turn) else ""

    def may_defer(self) -> bool:
        return self._task is None and self._turn.task.possible

    def publish(self, request: InputRequest) -> None:
        if self._task is not None and may_publish(self._turn, request):
            self._task.publish(request, answer_by(self._turn))

    def store_journal(self, journal: Callable[[], Journal]) -> Awaitable[None] | None:
        if self._task is None:
            self._recorded = journal
            return None
        return self._task.store_journal(self._sealed(journal))

    def _sealed(self, journal: Callable[[], Journal]) -> Callable[[], Awaitable[str]]:
        turn = self._turn
        return lambda: journal_before(turn._replace(journal=journal()))

    def close_stream(self) -> None:
        owned_call = self._turn.incoming.owned_call
        if owned_call is not None:
            owned_call.close_stream()

    def misused(self, misuse: Misuse, other_call: Call | None) -> None:
        commits.misuse(self._turn, misuse, other_call)


def run(
    incoming: Incoming,
    primitive: RunnablePrimitive,
    target: str,
    arguments: Mapping[str, Any],
    stream: EventStream,
) -> Awaitable[Reply]:
    """Run a round of a call within the caller's limits: the first, or the next of a resumed call.

    Raises ProtocolError, at once or when awaited, when there is no reply of the program: over a
    limit, invalid state, not recorded, or (INTERNAL_ERROR) a process that has died began the round
    and its outcome is not known.
    """
    owned_call = incoming.owned_call
    if owned_call is not None and owned_call.uncertain and primitive.claims:
        raise ProtocolError(INTERNAL_ERROR, UNCERTAIN)
    turn = turn_of(incoming, primitive, target, arguments)
    if limits.are_set(incoming):
        return _run_limited(turn, stream)
    return _run_round(turn, stream)


async def run_unrecorded(turn: Turn, stream: EventStream) -> Mapping[str, Any]:
    """Run a round that cannot request input, unrecorded, within the caller's limits.

    Raises ProtocolError for any outcome that is not a result.
    """
    limits.count_call(turn.incoming)
    with limits.occupy(turn.incoming):
        return await rounds.run_unrecorded(turn, RoundPorts(turn, stream))


def turn_of(
    incoming: Incoming, primitive: RunnablePrimitive, target: str, arguments: Mapping[str, Any]
) -> Turn:
    """The first round of a new call, or the next round of an owned call."""
    owned_call, exchange = incoming.owned_call, incoming.exchange
    info = exchange.meta.client_info
    call = Call(
        new_id() if owned_call is None else owned_call.call,
        incoming.tenant.id,
        incoming.principal,
        exchange.method,
        target,
        arguments,
        Client(str(info.get("name", "")), str(info.get("version", "")), exchange.meta.capabilities),
        exchange.revision,
        exchange.era,
        Delivery.MODERN if owned_call is None else owned_call.delivery,
        trace_id=incoming.trace_id,
        version=primitive.version,
    )
    task = TaskMode.NEVER
    if primitive.task_support is not TaskSupport.NEVER:
        task = stored_tasks.task_mode(call, incoming, primitive.task_support)
    if owned_call is None:
        return Turn(incoming, primitive, call, EMPTY, task=task)
    resumed = owned_call.resumed
    return Turn(incoming, primitive, _call(call, resumed), resumed.journal, resumed, task)


async def _run_limited(turn: Turn, stream: EventStream) -> Reply:
    """Run a round in a slot for concurrent calls. If none is free, the call becomes a task, if it may:
    a task takes no slot. A call that another process has moved here waits for a slot."""
    incoming = turn.incoming
    if turn.resumed.state is not None:
        await limits.wait_for_slot(incoming)
    else:
        limits.count_call(incoming)
        if limits.turns_away(incoming) is not None:
            if turn.task.at_once:
                return await _run_round(turn, stream)
            if turn.task.possible:
                return await _run_round(turn._replace(task=TaskMode.INSTEAD_OF_REFUSAL), stream)
            turn = await resume_turn(turn)
            state = turn.resumed.state
            if state is not None and not state.input_requests:
                await limits.wait_for_slot(incoming, limits.SLOT_SECONDS)
    with limits.occupy(incoming):
        return await _run_round(turn, stream)


def _run_round(turn: Turn, stream: EventStream) -> Awaitable[Reply]:
    if turn.primitive.missing_function and turn.incoming.owned_call is None:
        return _pass_to_other_process(turn, stream)
    resumes_call = resume.resumes_call(turn.incoming.exchange.params)
    if (resumes_call and turn.call.delivery is Delivery.MODERN) or not is_warm(turn.call.tenant):
        return _run_resumed(turn, stream)
    return rounds.run(turn, RoundPorts(turn, stream))


async def _run_resumed(turn: Turn, stream: EventStream) -> Reply:
    turn = await resume_turn(turn)
    return await rounds.run(turn, RoundPorts(turn, stream))


async def _pass_to_other_process(turn: Turn, stream: EventStream) -> Reply:
    """Let another process run the round: this one lacks the function, without which it can only create a task."""
    turn = await resume_turn(turn)
    if turn.task.possible:
        deferred = turn._replace(task=TaskMode.INSTEAD_OF_REFUSAL)
        return await rounds.run(deferred, RoundPorts(deferred, stream))
    return await missing_functions.run(turn)


async def resume_turn(turn: Turn) -> Turn:
    """Return the turn with the request state of its request, if that has one.

    Raises ProtocolError for an invalid state.
    """
    await warm(turn.call.tenant)
    resumes_call = resume.resumes_call(turn.incoming.exchange.params)
    if turn.call.delivery is not Delivery.MODERN or not resumes_call or turn.resumed is not FRESH:
        return turn
    try:
        resumed = await resume.resume(turn.incoming, turn.bound, unasked=turn.primitive.unasked)
    except InvalidStateError as error:
        await commits.refusal(turn, error.reason, error.call)
        raise resume.invalid_state() from None
    return turn._replace(call=_call(turn.call, resumed), journal=resumed.journal, resumed=resumed)


def _call(call: Call, resumed: Resumed) -> Call:
    state = resumed.state
    return call if state is None else call._replace(id=state.call, round=state.round + 1)
