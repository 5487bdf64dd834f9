"""Key rotation with two processes, one of which receives every change late.

Code inside `elsewhere` stands for another process. That process's keys are `theirs()`.
"""

from collections.abc import Callable
from uuid import UUID

import pytest
from pytest_django import Settings

from mcphost.audit.records import Actor
from mcphost.feed.loop import loop as feed
from mcphost.sealing.tokens import Purpose, SealError, key_id
from mcphost.serving import sealing
from mcphost.serving.database import in_database
from mcphost.vault import selectors
from mcphost.vault.lifecycle import destroy, destroy_salt, retire, rotate, run_due_transitions
from mcphost.vault.sealer import TenantSealer, fetch
from mcphost.vault.services import ensure_ring
from tests.cast import Cast
from tests.conftest import Elsewhere
from tests.mcp import Reply, ask
from tests.vault.rings import have_expired, have_waited

pytestmark = pytest.mark.django_db(transaction=True)

OLGA = Actor.system("olga")
STATE = Purpose.STATE


@pytest.fixture
def tenant(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> UUID:
    """A tenant whose keys both processes have read."""
    monkeypatch.setattr(sealing, "EVERY_SECONDS", 0.01)
    ensure_ring()
    fetch(cast.acme.id)
    feed.poll()
    fetch(cast.acme.id)
    return cast.acme.id


def theirs(tenant: UUID) -> TenantSealer:
    """The keys of a process that has just read all of them."""
    secrets = selectors._load_tenant(tenant)
    return TenantSealer(tenant, selectors._load_ring(), secrets.salt)


@pytest.fixture
def there(elsewhere: Elsewhere) -> Callable[[Callable[[], object]], None]:
    """`there(work)`: another process does the work, and this one has not received it yet."""

    def do(work: Callable[[], object]) -> None:
        remembered = dict(selectors._rings._values), dict(selectors._tenants._values)
        with elsewhere():
            work()
        # Restore this process's caches: the services clear those of the process in which they run.
        for cache, values in zip((selectors._rings, selectors._tenants), remembered, strict=True):
            cache._values.update(values)  # type: ignore[arg-type]

    return do


async def test_no_valid_token_is_refused_on_either_process_during_a_rotation(
    tenant: UUID, there: Callable[[Callable[[], object]], None]
) -> None:
    async def cross(*, late: bool) -> None:
        """Check that each process opens what the other has just sealed."""
        ours = await sealing.seal(STATE, tenant, b"ours")
        they = await in_database(theirs, tenant)
        assert they.unseal(STATE, ours) == b"ours"
        token = they.seal(STATE, b"theirs")
        assert (key_id(token) != key_id(ours)) is late
        assert await sealing.unseal(STATE, tenant, token) == b"theirs"

    def next_step() -> None:
        have_waited(made[0])
        run_due_transitions()

    made: list[str] = []
    await cross(late=False)
    await in_database(there, lambda: made.append(rotate(OLGA)))
    await cross(late=False)
    await in_database(there, next_step)
    await cross(late=True)
    await in_database(feed.poll)
    await cross(late=False)
    assert key_id(await sealing.seal(STATE, tenant, b"x")) == made[0]


async def test_a_token_of_an_old_key_opens_until_it_has_expired(tenant: UUID) -> None:
    old = await sealing.seal(STATE, tenant, b"x")

    def replace() -> None:
        have_waited(rotate(OLGA))
        run_due_transitions()

    def expire() -> None:
        have_expired(key_id(old))
        run_due_transitions()

    await in_database(replace)
    assert await sealing.unseal(STATE, tenant, old) == b"x"
    await in_database(expire)
    with pytest.raises(SealError):
        await sealing.unseal(STATE, tenant, old)


async def test_a_compromised_key_opens_nothing_once_the_change_is_read(
    tenant: UUID, there: Callable[[Callable[[], object]], None]
) -> None:
    old = await sealing.seal(STATE, tenant, b"x")
    await in_database(there, lambda: rotate(OLGA, compromised=True))
    assert await sealing.unseal(STATE, tenant, old) == b"x"
    await in_database(feed.poll)
    with pytest.raises(SealError):
        await sealing.unseal(STATE, tenant, old)
    assert key_id(await sealing.seal(STATE, tenant, b"x")) != key_id(old)


async def test_a_key_destroyed_by_another_process_is_dropped_once_the_change_is_read(
    tenant: UUID, there: Callable[[Callable[[], object]], None]
) -> None:
    old = await sealing.seal(STATE, tenant, b"x")

    def replace() -> None:
        have_waited(rotate(OLGA))
        run_due_transitions()
        fetch(tenant)

    def end() -> None:
        retire(key_id(old), OLGA)
        destroy(key_id(old), OLGA)

    await in_database(replace)
    await in_database(there, end)
    assert await sealing.unseal(STATE, tenant, old) == b"x"
    await in_database(feed.poll)
    assert not selectors._rings._values, "nothing of the key is left in memory"
    with pytest.raises(SealError):
        await sealing.unseal(STATE, tenant, old)


async def test_a_salt_destroyed_by_another_process_is_dropped_once_the_change_is_read(
    tenant: UUID, there: Callable[[Callable[[], object]], None]
) -> None:
    token = await sealing.seal(STATE, tenant, b"x")
    await in_database(there, lambda: destroy_salt(tenant, OLGA))
    assert await sealing.unseal(STATE, tenant, token) == b"x"
    await in_database(feed.poll)
    assert tenant not in selectors._tenants._values
    with pytest.raises(SealError):
        await sealing.unseal(STATE, tenant, token)
    with pytest.raises(SealError):
        await sealing.seal(STATE, tenant, b"x")


@pytest.fixture
async def cursor(offered: Cast, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> str:
    """The cursor from the first page of a list to its second."""
    monkeypatch.setattr(sealing, "EVERY_SECONDS", 0.01)
    settings.MCPHOST_PAGE_SIZE = 1
    first = (await _tools(offered)).result
    assert [tool["name"] for tool in first["tools"]] == ["echo"]
    found: str = first["nextCursor"]
    return found


async def _tools(cast: Cast, **params: str) -> Reply:
    return await ask("acme", "tools/list", params, cast.owner.mcp_token)


async def test_a_cursor_of_a_compromised_key_is_refused_like_an_invalid_one(
    offered: Cast, cursor: str
) -> None:
    await in_database(rotate, OLGA, compromised=True)
    gone, wrong = [await _tools(offered, cursor=each) for each in (cursor, "nonsense")]
    assert gone.error == wrong.error
    assert "start again without one" in gone.error["message"]
