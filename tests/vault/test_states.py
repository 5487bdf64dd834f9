from itertools import pairwise, product

import pytest

from mcphost.vault.states import OPENS, SEALS, TRANSITIONS, KeyState, may_become

LIFE = (
    KeyState.STANDBY,
    KeyState.ACTIVE,
    KeyState.RETIRING,
    KeyState.RETIRED,
    KeyState.DESTROYED,
)


@pytest.mark.parametrize(("now", "then"), list(product(KeyState, KeyState)))
def test_a_key_goes_one_step_at_a_time_and_never_back(now: KeyState, then: KeyState) -> None:
    assert may_become(now, then) is ((now, then) in set(pairwise(LIFE)))


def test_every_state_has_its_row_in_the_table() -> None:
    assert set(TRANSITIONS) == set(KeyState) == set(LIFE)


def test_a_key_seals_when_active_and_opens_from_standby_until_it_is_retired() -> None:
    assert SEALS is KeyState.ACTIVE
    assert {KeyState.STANDBY, KeyState.ACTIVE, KeyState.RETIRING} == OPENS
