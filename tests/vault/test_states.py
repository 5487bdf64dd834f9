from itertools import product
from pathlib import Path

import pytest

from mcphost.vault.states import OPENS, SEALS, TRANSITIONS, KeyState, KeyVerb, diagram, next_state

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


@pytest.mark.parametrize(("state", "verb"), list(product(KeyState, KeyVerb)))
def test_key_transitions_follow_the_table_for_each_state_and_verb(state: KeyState, verb: KeyVerb):
    assert next_state(state, verb) == EXPECTED.get((state, verb))


def test_a_key_seals_only_when_active_and_opens_from_standby_until_it_is_retired() -> None:
    assert SEALS is KeyState.ACTIVE
    assert {KeyState.STANDBY, KeyState.ACTIVE, KeyState.RETIRING} == OPENS


def test_the_diagram_has_a_line_for_each_transition() -> None:
    assert set(TRANSITIONS) == set(KeyState)
    lines = list(diagram())
    assert len(lines) == len(EXPECTED)
    assert "standby --promote--> active" in lines
    assert "\n".join(lines) in (ROOT / "docs" / "keys.md").read_text()
