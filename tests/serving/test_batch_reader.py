"""One database read for the rows that several requests need."""

import asyncio
import threading
from collections.abc import Collection, Iterator, Mapping

import pytest

from mcphost.serving.database import THREADS, BatchReader, in_database

pytestmark = pytest.mark.django_db(transaction=True)

PATIENCE = 20


class Reads:
    """What was read, each time; the rows are `rows` at that moment. It waits while `gate` is cleared."""

    def __init__(self) -> None:
        self.rows: dict[str, str] = {}
        self.keys: list[set[str]] = []
        self.gate, self.begun = threading.Event(), threading.Event()
        self.gate.set()
        self.error: Exception | None = None

    def __call__(self, keys: Collection[str]) -> Mapping[str, str]:
        self.keys.append(set(keys))
        seen = dict(self.rows)
        self.begun.set()
        assert self.gate.wait(PATIENCE)
        if self.error is not None:
            raise self.error
        return seen


@pytest.fixture
def reads() -> Iterator[Reads]:
    made = Reads()
    yield made
    made.gate.set()


class Busy:
    """All threads of the pool, while the context lasts."""

    def __init__(self) -> None:
        self._leave = threading.Event()
        self._entered = threading.Semaphore(0)

    def _occupy(self) -> None:
        self._entered.release()
        assert self._leave.wait(PATIENCE)

    async def __aenter__(self) -> None:
        self._work = [asyncio.create_task(in_database(self._occupy)) for _ in range(THREADS)]
        for _ in range(THREADS):
            assert await asyncio.to_thread(self._entered.acquire, timeout=PATIENCE)

    async def __aexit__(self, *_: object) -> None:
        self._leave.set()
        await asyncio.gather(*self._work)


async def test_requests_before_the_read_begins_are_read_together(reads: Reads) -> None:
    reader = BatchReader(reads)
    reads.rows = {"a": "one", "b": "two"}
    async with Busy():
        asked = [asyncio.create_task(reader.get(key)) for key in "abca"]
        await asyncio.sleep(0)
    assert await asyncio.gather(*asked) == ["one", "two", None, "one"]
    assert reads.keys == [{"a", "b", "c"}]


async def test_requests_after_the_read_has_begun_are_read_anew(reads: Reads) -> None:
    reader = BatchReader(reads)
    reads.gate.clear()
    early = asyncio.create_task(reader.get("a"))
    assert await asyncio.to_thread(reads.begun.wait, PATIENCE)
    reads.rows["a"] = "one"
    late = asyncio.create_task(reader.get("a"))
    await asyncio.sleep(0)
    reads.gate.set()
    assert await asyncio.gather(early, late) == [None, "one"]


async def test_an_error_reaches_all_requests_of_its_batch_and_no_later_one(reads: Reads) -> None:
    reader = BatchReader(reads)
    reads.error = ValueError("unreadable")
    async with Busy():
        asked = [asyncio.create_task(reader.get(key)) for key in "ab"]
        await asyncio.sleep(0)
    for each in asked:
        with pytest.raises(ValueError, match="unreadable"):
            await each
    reads.error, reads.rows = None, {"a": "one"}
    assert await reader.get("a") == "one"
