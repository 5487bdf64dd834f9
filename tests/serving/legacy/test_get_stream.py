"""GET streams of one session on two processes, which receive the same changes in the same order."""

import asyncio
from datetime import UTC, datetime
from uuid import UUID, uuid4

from hypothesis import given
from hypothesis import strategies as st

from mcphost.calls.sessions import CLOSED, OPENED
from mcphost.feed.loop import ChangeNews
from mcphost.protocol.revisions import LATEST_LEGACY
from mcphost.runtime.call import Client, Principal, PrincipalKind
from mcphost.serving.context import ClientSession
from mcphost.serving.legacy.get_stream import GetStreams, SessionStream
from mcphost.serving.subscriptions.registry import listeners
from tests.serving.made_offerings import offering
from tests.serving.subscriptions.test_registry import Heap

TENANT, SESSION = uuid4(), uuid4()
WHO = Principal(PrincipalKind.TOKEN, TENANT, id="t1")


def stream(session: UUID = SESSION) -> SessionStream:
    begun = ClientSession(
        id=session,
        tenant=TENANT,
        principal_key="token:t1",
        revision=LATEST_LEGACY.name,
        client=Client(),
        log_level="",
        expires_at=datetime.max.replace(tzinfo=UTC),
    )
    return SessionStream(begun, WHO, Heap())


def news(what: str, one: SessionStream) -> ChangeNews:
    return ChangeNews(1, TENANT, what, f"{one.session.id.hex} {one.stream_id.hex}")


class Fleet:
    """Two processes, and their open streams."""

    def __init__(self) -> None:
        self.nodes = (GetStreams(), GetStreams())
        self.open: list[tuple[int, SessionStream]] = []

    async def opens(self, node: int) -> None:
        one = stream()
        listeners.join(one, offering(), {})
        self.nodes[node].add(one)
        self.open.append((node, one))
        for each in self.nodes:
            await each.opened([news(OPENED, one)])

    async def closes(self, place: int) -> None:
        if self.open:
            node, one = self.open.pop(place % len(self.open))
            self.nodes[node].discard(one)
            listeners.remove(one)
            for each in self.nodes:
                await each.closed([news(CLOSED, one)])

    def end(self) -> None:
        for node, one in self.open:
            self.nodes[node].discard(one)
            listeners.remove(one)


@given(st.lists(st.tuples(st.sampled_from(["open", "open", "close"]), st.integers(0, 7))))
def test_only_the_newest_get_stream_across_processes_is_notified(
    steps: list[tuple[str, int]],
) -> None:
    async def run() -> None:
        fleet = Fleet()
        for what, number in steps:
            await (fleet.opens(number % 2) if what == "open" else fleet.closes(number))
            told = [one for _, one in fleet.open if one.newest]
            assert told == [one for _, one in fleet.open[-1:]]
        fleet.end()

    asyncio.run(run())
