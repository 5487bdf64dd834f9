import asyncio
from uuid import uuid4

from mcphost.observability import context


def test_outside_of_a_request_there_are_no_facts():
    assert context.current() is None


def test_the_facts_of_a_request_hold_inside_it_and_end_with_it():
    leg = uuid4()
    with context.bound(leg, "acme", "ab" * 16):
        assert context.current() == context.RequestFacts(leg, "acme", "ab" * 16)
    assert context.current() is None


async def test_the_facts_follow_tasks_and_threads_of_the_request():
    with context.bound(uuid4(), "acme", "ab" * 16):
        inside = context.current()
        in_task = await asyncio.create_task(_facts())
        in_thread = await asyncio.to_thread(context.current)
    assert in_task is inside
    assert in_thread is inside


async def test_two_requests_at_once_keep_their_own_facts():
    async def request(tenant: str) -> str | None:
        with context.bound(uuid4(), tenant, "ab" * 16):
            await asyncio.sleep(0)
            facts = context.current()
            return facts and facts.tenant

    assert await asyncio.gather(request("acme"), request("globex")) == ["acme", "globex"]


async def _facts() -> context.RequestFacts | None:
    return context.current()
