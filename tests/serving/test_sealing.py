"""Tokens of keys that this process has not cached yet, and of keys that never existed."""

import asyncio
import threading
from collections.abc import Callable
from uuid import UUID

import pytest
from django.db import OperationalError, transaction
from django.utils import timezone
from pytest_django import Settings

from mcphost.observability.availability import availability
from mcphost.sealing.tokens import Key, Purpose, Reason, Ring, SealError, key_id
from mcphost.serving import sealing
from mcphost.serving.database import in_database
from mcphost.serving.sealing import LateKeys
from mcphost.vault import sealer, selectors
from mcphost.vault.master import master_key
from mcphost.vault.models import RingKey, location_of
from mcphost.vault.states import KeyState
from mcphost.vault.wrapping import wrap
from tests.cast import Cast
from tests.conftest import Elsewhere

pytestmark = pytest.mark.django_db(transaction=True)

SHORT = 0.05
PATIENCE = 20
FLOOD = 300


def made_up(n: int) -> str:
    return f"mcps1.no{n}.{'A' * 80}"


def reason(refused: BaseException) -> Reason:
    assert isinstance(refused, SealError)
    return refused.reason


@pytest.fixture
def tenant(cast: Cast) -> UUID:
    sealer.warm(cast.acme.id)
    return cast.acme.id


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "EVERY_SECONDS", SHORT)


@pytest.fixture
def new_key(elsewhere: Elsewhere) -> Callable[[], Ring]:
    """Returns the ring of another process that makes a key and seals with it at once."""

    def rotate() -> Ring:
        now = timezone.now()
        row = RingKey(id="late", state=KeyState.ACTIVE, created_at=now, state_since=now)
        row.wrapped = wrap(bytes(32), location_of(row, "wrapped"), master_key(), bytes(12))
        with elsewhere(), transaction.atomic():
            RingKey.objects.update(state=KeyState.RETIRING)
            row.save()
        return selectors._load_ring()

    return rotate


class Reads:
    """Reads of the ring that a test can await, count and let end."""

    def __init__(self, *ends: BaseException | None) -> None:
        self.count = 0
        self.began = threading.Semaphore(0)
        self.may_end = threading.Semaphore(0)
        self._ends = list(ends)

    def __call__(self) -> Ring:
        self.count += 1
        mine = self.count
        self.began.release()
        assert self.may_end.acquire(timeout=PATIENCE)
        if self._ends and (error := self._ends.pop(0)) is not None:
            raise error
        key = Key(f"k{mine}", bytes(32))
        return Ring(key, {key.id: key})

    async def begun(self) -> None:
        assert await asyncio.to_thread(self.began.acquire, timeout=PATIENCE)


async def test_a_token_of_a_key_that_is_not_cached_yet_opens(
    tenant: UUID, new_key: Callable[[], Ring]
) -> None:
    ring = await in_database(new_key)
    salt = await in_database(selectors.salt, tenant)
    token = sealer.TenantSealer(tenant, ring, salt).seal(Purpose.STATE, b"x")
    assert key_id(token) == "late"
    with pytest.raises(SealError):
        sealer.unseal(Purpose.STATE, tenant, token)
    assert await sealing.unseal(Purpose.STATE, tenant, token) == b"x"
    assert sealer.unseal(Purpose.STATE, tenant, token) == b"x", "what was read is remembered"


async def test_a_token_of_an_unknown_key_is_refused_after_one_database_read(
    tenant: UUID, short: None
) -> None:
    with pytest.raises(SealError) as caught:
        await sealing.unseal(Purpose.STATE, tenant, made_up(1))
    assert caught.value.reason is Reason.UNKNOWN_KEY


@pytest.mark.parametrize(
    "token", ["", "nonsense", "mcps1.NOT-A-KEY.AAAA", "mcps1.x" + "y" * 70_000]
)
async def test_a_malformed_token_costs_no_database_read(
    tenant: UUID, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = Reads()
    monkeypatch.setattr(sealing, "_late_keys", LateKeys(reads))
    with pytest.raises(SealError):
        await sealing.unseal(Purpose.STATE, tenant, token)
    assert reads.count == 0


async def test_a_flood_of_unknown_keys_is_read_at_intervals_and_delays_no_request(
    tenant: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing, "EVERY_SECONDS", 3600)
    reads = 0

    def read() -> Ring:
        nonlocal reads
        reads += 1
        return selectors.reread_ring()

    monkeypatch.setattr(sealing, "_late_keys", LateKeys(read))
    good = await sealing.seal(Purpose.STATE, tenant, b"x")

    def flood() -> list[asyncio.Task[bytes]]:
        unsealing = (sealing.unseal(Purpose.STATE, tenant, made_up(n)) for n in range(FLOOD))
        return [asyncio.create_task(one) for one in unsealing]

    first = flood()
    await asyncio.sleep(0)
    assert await sealing.unseal(Purpose.STATE, tenant, good) == b"x"
    assert not any(task.done() for task in first), "who knows its key waits for nobody"
    ends = await asyncio.gather(*first, return_exceptions=True)
    assert {reason(end) for end in ends if isinstance(end, BaseException)} == {Reason.UNKNOWN_KEY}
    second = flood()
    done, _ = await asyncio.wait(second, timeout=SHORT, return_when=asyncio.FIRST_COMPLETED)
    assert (done, reads) == (set(), 1)
    for task in second:
        task.cancel()
    await asyncio.gather(*second, return_exceptions=True)


async def test_a_failed_read_of_the_keys_is_an_error_and_the_next_one_is_tried(
    short: None, settings: Settings
) -> None:
    settings.MCPHOST_DATABASE_WAIT_SECONDS = 0
    reads = Reads(OperationalError("away"), None)
    late = LateKeys(reads)
    reads.may_end.release(2)
    with pytest.raises(OperationalError):
        await late.ring()
    assert await availability.wait(PATIENCE), "the error was no sign that the database is away"
    assert (await late.ring()).active.id == "k2"
