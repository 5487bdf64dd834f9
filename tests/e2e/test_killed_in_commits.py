"""A process is killed before, in and after commits of session calls: the calls continue elsewhere.

There is a call for each type of commit. All of them get into one statement of the record writer, which
waits for a lock that the test has: the commit of one more call, the leader, blocks the writer until
the others are in its queue.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from uuid import UUID

import httpx2

from tests.e2e.handmade_calls import Asker, accept, at, beside_effects, effects, wait_until
from tests.e2e.locks import LOCK, Watch, holding, watching
from tests.e2e.nodes import Node, Service
from tests.e2e.processes import Server
from tests.e2e.sessions import Session, Stream
from tests.e2e.test_killed_rounds import CLAIMING, FREE
from tests.e2e.test_metrics_and_traces import scrape

PATIENCE = 60
BEFORE, BETWEEN, AFTER = STEPS = ("before", "between", "after")
UNCERTAIN = "it may have taken effect"
AGAIN = 70
"""By how much an answer differs that is given because the one before was not acknowledged."""

_numbers = count(1_000_000)


@dataclass(frozen=True)
class Program:
    """Two questions, and a step before, between and after them. It pauses after the step `pauses`."""

    tool: str = CLAIMING
    pauses: str = ""
    number: int = field(default_factory=_numbers.__next__)

    @property
    def asker(self) -> Asker:
        program: list[list[Any]] = []
        for step, question in zip(STEPS, ("q0", "q1", ""), strict=True):
            program.append(["step", step, self.number])
            program += [["pause"]] if step == self.pauses else []
            program += [["ask", question]] if question else []
        return Asker(self.tool, {"program": program})

    def steps(self, lines: list[list[Any]]) -> Counter[str]:
        return Counter(step for step, number, *_ in lines if number == self.number)

    def ran(self, lines: list[list[Any]], twice: str = "") -> bool:
        """Whether each step was done once, but for one that was done again under the same idempotency key."""
        keys = {(step, key) for step, number, *_, key in lines if number == self.number}
        often = {step: 1 + (step == twice) for step in STEPS}
        return self.steps(lines) == often and len(keys) == len(STEPS)


Shown = tuple[str, dict[str, Any]]
"""The id of an event, and its message."""


class Caller:
    """A client that makes one call, and keeps what it reads and which of its answers should count."""

    def __init__(
        self, session: Session, program: Program, answers: dict[str, int] | None = None
    ) -> None:
        self.program = program
        self.answers = answers or {"q0": 7, "q1": 8}
        self.read: list[Shown] = []
        self._session = session
        self._question: dict[str, Any] | None = None
        self._unsure = False
        self._last_id = ""
        self._stream: Stream | None = None
        self._response = AsyncExitStack()

    async def call(self, server: Server) -> None:
        asker = self.program.asker
        calling = self._session.calling(server, asker.tool, asker.arguments)
        self._stream = await self._response.enter_async_context(calling)

    async def begin(self, server: Server) -> None:
        await self.call(server)
        assert self._stream is not None
        self._last_id = await self._stream.begun()

    async def come_back(self, server: Server) -> None:
        await self._hang_up()
        resuming = self._session.resuming(server, self._last_id)
        self._stream = await self._response.enter_async_context(resuming)

    async def next(self) -> dict[str, Any]:
        assert self._stream is not None
        message = await self._stream.message()
        self._last_id = self._stream.last_id
        self.read.append((self._last_id, message))
        self._question = message if "method" in message else None
        return message

    async def question(self) -> None:
        assert (await self.next()).get("method") == "elicitation/create", self.read

    async def answer(self, server: Server) -> None:
        """Answer the last question. If that is not acknowledged, the client cannot be sure of it."""
        assert self._question is not None
        key = "q1" if "q1?" in self._question["params"]["message"] else "q0"
        self._unsure = True
        await self._session.answer(server, self._question, accept(number=self.answers[key]))
        self._question, self._unsure = None, False

    async def answer_what_is_asked(self, server: Server, *, lost: bool) -> None:
        """Answer the last question unless an answer was acknowledged, with another number if one was given."""
        if self._question is None:
            return
        counts = self.answers
        if self._unsure:
            self.answers = {key: number + AGAIN for key, number in counts.items()}
            counts = self.answers if lost else counts
        await self.answer(server)
        self.answers = counts

    async def end(self, server: Server) -> None:
        while "method" in await self.next():
            await self.answer(server)
        assert self._stream is not None
        assert await self._stream.is_over()
        await self._hang_up()

    async def shown(self, server: Server) -> list[Shown]:
        found: list[Shown] = []
        async with self._session.resuming(server, f"{self.stream.hex}-1") as stream:
            for _ in self.read:
                message = await stream.message()
                found.append((stream.last_id, message))
            assert await stream.is_over()
        return found

    async def _hang_up(self) -> None:
        with suppress(httpx2.TransportError):
            await self._response.aclose()

    @property
    def knows_its_stream(self) -> bool:
        return bool(self._last_id)

    @property
    def has_reply(self) -> bool:
        return bool(self.read) and "method" not in self.read[-1][1]

    @property
    def stream(self) -> UUID:
        return UUID(hex=self._last_id.partition("-")[0])

    @property
    def numbers(self) -> list[int]:
        return [int(name.rpartition("-")[2]) for name, _ in self.read]

    @property
    def reply(self) -> dict[str, Any]:
        (only,) = (message for _, message in self.read if "method" not in message)
        return only

    @property
    def text(self) -> str:
        text: str = self.reply["result"]["content"][0]["text"]
        return text


class Calls:
    """Calls by what their process is going to commit for them."""

    def __init__(self, session: Session) -> None:
        def caller(pauses: str = "", tool: str = CLAIMING) -> Caller:
            return Caller(session, Program(tool, pauses))

        self.begins, self.asks, self.asks_freely = (
            caller(BEFORE),
            caller(BEFORE),
            caller(BEFORE, FREE),
        )
        self.goes_on, self.leads = caller(BETWEEN), caller()
        self.asks_again, self.ends = caller(BETWEEN), caller(AFTER)
        self.paused = (self.begins, self.asks, self.asks_freely, self.asks_again, self.ends)
        self.every = (*self.paused, self.goes_on, self.leads)

    async def get_ready(self, server: Server) -> None:
        streaming = asyncio.gather(self.asks.begin(server), self.asks_freely.begin(server))
        for caller in (self.goes_on, self.leads, self.asks_again, self.ends):
            await caller.call(server)
            await caller.question()
        await self.ends.answer(server)
        await self.ends.question()
        for caller in (self.asks_again, self.ends):
            await caller.answer(server)
        await streaming


Entries = Counter[tuple[Any, ...]]
"""Audit entries of a call: action, round, outcome and the key of the question."""
ENTRIES = """
SELECT action, entry.round, outcome, facts ->> 'key' FROM audit_entry AS entry
JOIN calls_streamedcall AS call ON call.id = entry.call WHERE call.stream = %s
"""
REPEATED = """
SELECT call, entry.round, action, facts ->> 'key' FROM audit_entry AS entry
JOIN calls_streamedcall AS other ON other.id = entry.call
JOIN calls_streamedcall AS one ON one.session = other.session
WHERE one.stream = %s AND action IN ('round.finished', 'answer.received')
GROUP BY 1, 2, 3, 4 HAVING count(*) > 1
"""
STORED = """
SELECT count(*) FROM calls_streamedcall AS one JOIN calls_streamedcall AS other
ON other.session = one.session WHERE one.stream = %s
"""
STARTED: Entries = Counter([("round.started", 1, "", None)])
REFUSED: Entries = Counter([("answer.refused", None, "refused", "q0")])


@dataclass(frozen=True)
class Scene:
    """A process that is going to be killed, with its calls, and two others, `here` and `there`."""

    service: Service
    watch: Watch
    victim: Node
    session: Session
    calls: Calls
    calling: "asyncio.Task[None]"
    earlier_effects: int

    @property
    def server(self) -> Server:
        return at(self.service, self.victim)

    @property
    def here(self) -> Server:
        return at(self.service, self.service.first)

    @property
    def there(self) -> Server:
        return at(self.service, self.service.second)

    def effects(self) -> list[list[Any]]:
        return effects(self.service)[self.earlier_effects :]

    def did(self, caller: Caller, step: str) -> bool:
        return caller.program.steps(self.effects())[step] > 0

    def stored(self) -> int:
        """How many calls of the session are stored. Those of others are pruned meanwhile, and not counted."""
        ((number,),) = self.watch.rows(STORED, self.calls.leads.stream)
        return int(number)

    @asynccontextmanager
    async def held_up(self) -> AsyncIterator[Callable[[], Any]]:
        """All commits are in the writer's queue, but that of `leads`, whose statement waits."""
        url, calls = self.service.settings["DATABASE_URL"], self.calls
        with holding(url) as first, holding(url) as second:
            first.take()
            leading = _expected_to_fail(calls.leads.answer(self.server))
            await asyncio.to_thread(self.watch.waits)
            going_on = _expected_to_fail(calls.goes_on.answer(self.server))
            beside_effects(self.service, ".pause").unlink()
            await self._queued(1 + len(calls.paused))

            async def in_statement() -> None:
                taking = asyncio.create_task(asyncio.to_thread(second.take))
                await asyncio.to_thread(self.watch.waits, LOCK)
                first.release()
                await taking
                await leading
                await _until(lambda: self.did(calls.leads, BETWEEN))

            yield in_statement
        await asyncio.gather(leading, going_on)

    async def _queued(self, how_many: int) -> None:
        await _until(lambda: scrape(self.server)["mcphost_records_waiting"] == how_many)

    async def kill(self) -> None:
        await asyncio.to_thread(self.victim.kill)

    async def go_on(self, *, lost: bool) -> None:
        """The clients come back to the two other processes, and go on to the ends of their calls."""
        with suppress(httpx2.TransportError):
            await self.calling
        every = self.calls.every
        going = [each for each in every if each.knows_its_stream and not each.has_reply]
        await asyncio.gather(*(self._go_on(each, lost) for each in going))

    async def _go_on(self, caller: Caller, lost: bool) -> None:
        await caller.come_back(self.there)
        await caller.answer_what_is_asked(self.here, lost=lost)
        await caller.end(self.here)

    async def ended_well(
        self, caller: Caller, twice: str = "", *, more: Entries | None = None
    ) -> None:
        """The call has ended as one does that is not disturbed, but for a step that ran `twice`, and
        `more` audit entries."""
        done = [line for line in self.effects() if line[1] == caller.program.number]
        assert caller.program.ran(done, twice), twice
        await self.was_read_once(caller)
        twin = Caller(self.session, caller.program, caller.answers)
        await twin.call(self.here)
        await twin.end(self.there)
        assert caller.text == twin.text
        assert self._entries(caller) == self._entries(twin) + (more or Counter())

    async def was_read_once(self, caller: Caller) -> None:
        assert caller.numbers == list(range(2, 2 + len(caller.read)))
        assert caller.reply is caller.read[-1][1]
        for server in (self.here, self.there):
            assert await caller.shown(server) == caller.read

    def _entries(self, caller: Caller) -> Entries:
        return Counter(self.watch.rows(ENTRIES, caller.stream))

    async def was_called_anew(self, caller: Caller) -> None:
        """A client that knows nothing of its call makes another one; nothing more comes of the first."""
        another = Caller(self.session, Program())
        await another.call(self.here)
        await another.end(self.there)
        await self.ended_well(another)
        assert not caller.knows_its_stream
        assert caller.program.steps(self.effects()) == {BEFORE: 1}

    async def ended_well_without_the_commit(self) -> None:
        """The calls have ended well, although what was being committed for them was lost."""
        calls = self.calls
        await self.was_called_anew(calls.begins)
        assert UNCERTAIN in calls.asks.reply["error"]["message"]
        assert calls.asks.program.steps(self.effects()) == {BEFORE: 1}
        await self.was_read_once(calls.asks)
        await self.ended_well(calls.asks_freely, BEFORE, more=STARTED)
        await self.ended_well(calls.goes_on)
        await self.ended_well(calls.asks_again, BETWEEN)
        await self.ended_well(calls.ends, AFTER)
        self.nothing_is_recorded_twice()

    def nothing_is_recorded_twice(self) -> None:
        """Each round of the session has at most one end, and each question one answer."""
        assert self.watch.rows(REPEATED, self.calls.leads.stream) == []


def _expected_to_fail(answering: Any) -> "asyncio.Task[None]":
    async def answer() -> None:
        with suppress(httpx2.TransportError):
            await answering

    return asyncio.create_task(answer())


async def _until(it_is_so: Callable[[], bool]) -> None:
    await asyncio.to_thread(wait_until, it_is_so)


@asynccontextmanager
async def staged(service: Service) -> AsyncIterator[Scene]:
    """All calls are before their commits; those whose rounds have to end first have paused."""
    home = service.first.home.parent.parent / "mortal" / "home"
    home.parent.mkdir(exist_ok=True)
    victim = Node(home, **service.settings)
    await asyncio.to_thread(victim.start)
    server, pause = at(service, victim), beside_effects(service, ".pause")
    pause.touch()
    try:
        with watching(service.settings["DATABASE_URL"]) as watch:
            async with asyncio.timeout(PATIENCE), httpx2.AsyncClient(timeout=PATIENCE) as http:
                earlier = len(effects(service))
                session = await Session.begun(http, at(service, service.first))
                calls = Calls(session)
                await calls.get_ready(server)
                calling = asyncio.create_task(calls.begins.call(server))
                scene = Scene(service, watch, victim, session, calls, calling, earlier)
                await _until(lambda: all(scene.did(it, it.program.pauses) for it in calls.paused))
                yield scene
    finally:
        pause.unlink(missing_ok=True)
        beside_effects(service, ".paused").unlink(missing_ok=True)
        await asyncio.to_thread(victim.kill)


async def test_calls_continue_elsewhere_when_their_process_dies_before_a_commit(
    two_nodes: Service,
) -> None:
    async with staged(two_nodes) as scene:
        async with scene.held_up():
            backend = scene.watch.waits()
            await scene.kill()
            scene.watch.terminate(backend)
        assert scene.stored() == len(scene.calls.every) - 1
        await scene.go_on(lost=True)
        await scene.ended_well(scene.calls.leads)
        await scene.ended_well_without_the_commit()


async def test_calls_continue_elsewhere_when_their_process_dies_in_a_rolled_back_commit(
    two_nodes: Service,
) -> None:
    async with staged(two_nodes) as scene:
        async with scene.held_up() as in_statement:
            await in_statement()
            backend = scene.watch.waits()
            await scene.kill()
            scene.watch.terminate(backend)
        assert scene.stored() == len(scene.calls.every) - 1
        await scene.go_on(lost=True)
        await scene.ended_well(scene.calls.leads, BETWEEN)
        await scene.ended_well_without_the_commit()


async def test_calls_continue_elsewhere_when_their_process_dies_in_a_successful_commit(
    two_nodes: Service,
) -> None:
    async with staged(two_nodes) as scene:
        calls = scene.calls
        async with scene.held_up() as in_statement:
            await in_statement()
            backend = scene.watch.waits()
            await scene.kill()
        scene.watch.is_gone(backend)
        assert scene.stored() == len(calls.every)
        await scene.go_on(lost=False)
        await scene.ended_well(calls.leads, BETWEEN)
        for caller in (calls.asks, calls.asks_freely, calls.asks_again, calls.ends):
            await scene.ended_well(caller)
        await scene.ended_well(calls.goes_on, more=REFUSED)
        await scene.was_called_anew(calls.begins)
        scene.nothing_is_recorded_twice()


async def test_calls_continue_elsewhere_when_their_process_dies_right_after_a_commit(
    two_nodes: Service,
) -> None:
    async with staged(two_nodes) as scene:
        calls, pause = scene.calls, beside_effects(two_nodes, ".pause")
        pause.unlink()
        await scene.calling
        for caller in (calls.begins, calls.asks, calls.asks_freely, calls.asks_again):
            await caller.question()
        await calls.ends.end(scene.server)
        pause.touch()
        await calls.goes_on.answer(scene.server)
        await _until(lambda: scene.did(calls.goes_on, BETWEEN))
        await scene.kill()
        pause.unlink()
        assert scene.stored() == len(calls.every)
        await scene.go_on(lost=False)
        for caller in calls.every:
            await scene.ended_well(caller, BETWEEN if caller is calls.goes_on else "")
        scene.nothing_is_recorded_twice()
