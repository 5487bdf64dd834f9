"""Keys are rotated and salts destroyed between two rounds of a call."""

import pytest
from django.db.models.functions import Now

from mcphost.sealing.tokens import key_id
from mcphost.serving.database import in_database
from mcphost.vault import lifecycle
from mcphost.vault.models import RingKey
from tests.cast import ACTOR, Cast
from tests.rounds.client_steps import RED, Asker, accept, calling, done, failed, frozen, state_of
from tests.rounds.conftest import module

pytestmark = pytest.mark.django_db(transaction=True)


def _painting(cast: Cast) -> Asker:
    return calling(cast.owner.mcp_token, "paint", what="it").but(id=1)


async def _asked(asker: Asker) -> str:
    return state_of(await asker.leg())


async def _is_refused(asker: Asker, state: str) -> None:
    """As what was never a state is, to the byte."""
    reply, forged = await asker.leg(state, RED), await asker.leg("forged", RED)
    assert frozen(reply) == frozen(forged)
    assert module("asking").did == []


def _rotate() -> None:
    """Another key seals from now on, as after the seconds that a rotation waits."""
    made = lifecycle.rotate(ACTOR)
    RingKey.objects.filter(pk=made).update(state_since=Now() - 2 * lifecycle.STANDBY)
    assert lifecycle.run_due_transitions()


async def test_a_key_rotation_between_rounds_does_not_affect_the_call(asking: Cast) -> None:
    asker = calling(asking.owner.mcp_token, "in_turn", count=3)
    reply, ids = await asker.leg(), set()
    for n in range(3):
        ids.add(key_id(state_of(reply)))
        await in_database(_rotate)
        reply = await asker.leg(state_of(reply), {f"size{n}": accept(size=n + 1)})
    assert done(reply) == "1 2 3"
    assert len(ids) == 3


async def test_a_retired_or_destroyed_key_opens_no_state(asking: Cast) -> None:
    asker = _painting(asking)
    state = await _asked(asker)
    key = key_id(state)
    await in_database(_rotate)
    await in_database(lifecycle.retire, key, ACTOR)
    await _is_refused(asker, state)
    await in_database(lifecycle.destroy, key, ACTOR)
    await _is_refused(asker, state)
    assert done(await asker.leg(await _asked(asker), RED)) == "it is red"


async def test_a_destroyed_salt_invalidates_the_states_of_its_tenant_only(
    asking: Cast,
) -> None:
    asker = _painting(asking)
    other = asker.but(token=asking.stranger.mcp_token, tenant="globex")
    state, theirs = await _asked(asker), await _asked(other)
    await in_database(lifecycle.destroy_salt, asking.acme.id, ACTOR)
    await _is_refused(asker, state)
    assert failed(await asker.leg())
    assert done(await other.leg(theirs, RED)) == "it is red"
