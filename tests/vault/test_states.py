from itertools import product
from pathlib import Path

import pytest

from mcphost.vault.states import OPENS, SEALS, TRANSITIONS, KeyState, KeyVerb, diagram, following

ROOT = Path(__file__).resolve().parent.parent.parent
EXPECTED = {
    (KeyState.STANDBY, KeyVerb.PROMOTE): KeyState.ACTIVE,
    (KeyState.STANDBY, KeyVerb.COMPROMISE): KeyState.RETIRED,
    (KeyState.STANDBY, KeyVerb.RETIRE): KeyState.RETIRED,
    (KeyState.ACTIVE, KeyVerb.REPLACE): KeyState.RETIRING,
    (KeyState.ACTIVE, KeyVerb.COMPROMISE): KeyState.RETIRED,
    (KeyState.RETIRING, KeyVerb.RETIRE): KeyState.RETIRED,
    (KeyState.RETIRED, KeyVerb.DESTROY): KeyState.DESTROYED,
}
LIFE = tuple(KeyState)


@pytest.mark.parametrize(("state", "verb"), list(product(KeyState, KeyVerb)))
def test_each_verb_leads_from_each_state_where_the_table_says(
    state: KeyState, verb: KeyVerb
) -> None:
    assert following(state, verb) == EXPECTED.get((state, verb))


@pytest.mark.parametrize(("now", "then"), list(product(KeyState, KeyState)))
def test_no_key_ever_goes_back_and_none_is_destroyed_that_still_opens(
    now: KeyState, then: KeyState
) -> None:
    possible = then in TRANSITIONS[now].values()
    assert not possible or LIFE.index(now) < LIFE.index(then)
    assert not possible or then is not KeyState.DESTROYED or now not in OPENS


def test_a_key_seals_when_active_and_opens_from_standby_until_it_is_retired() -> None:
    assert SEALS is KeyState.ACTIVE
    assert {KeyState.STANDBY, KeyState.ACTIVE, KeyState.RETIRING} == OPENS


def test_the_diagram_has_a_line_for_each_transition() -> None:
    assert set(TRANSITIONS) == set(KeyState)
    lines = list(diagram())
    assert len(lines) == len(EXPECTED)
    assert "standby --promote--> active" in lines
    assert "\n".join(lines) in (ROOT / "docs" / "keys.md").read_text()
