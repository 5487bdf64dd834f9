import asyncio
from uuid import uuid4

from mcphost.observability import context


async def test_request_facts_are_visible_in_tasks_and_threads_until_the_request_ends():
    async def current() -> context.RequestFacts | None:
        return context.current()

    request = uuid4()
    with context.bound(request, "acme", "ab" * 16):
        assert context.current() == context.RequestFacts(request, "acme", "ab" * 16)
        assert await asyncio.create_task(current()) is context.current()
        assert await asyncio.to_thread(context.current) is context.current()
    assert context.current() is None


async def test_two_concurrent_requests_keep_their_own_facts():
    async def request(tenant: str) -> str | None:
        with context.bound(uuid4(), tenant, "ab" * 16):
            await asyncio.sleep(0)
            facts = context.current()
            return facts and facts.tenant

    assert await asyncio.gather(request("acme"), request("globex")) == ["acme", "globex"]
