"""Tests of every pair of state and verb."""

import itertools

import pytest

from mcphost.catalogue.states import TRANSITIONS, PrimitiveState, PrimitiveVerb, diagram, following

EXPECTED = {
    (PrimitiveState.DRAFT, PrimitiveVerb.PUBLISH): PrimitiveState.PUBLISHED,
    (PrimitiveState.PUBLISHED, PrimitiveVerb.PUBLISH): PrimitiveState.PUBLISHED,
    (PrimitiveState.PUBLISHED, PrimitiveVerb.DISABLE): PrimitiveState.DISABLED,
    (PrimitiveState.DISABLED, PrimitiveVerb.PUBLISH): PrimitiveState.PUBLISHED,
    (PrimitiveState.DISABLED, PrimitiveVerb.ENABLE): PrimitiveState.PUBLISHED,
    (PrimitiveState.PUBLISHED, PrimitiveVerb.ARCHIVE): PrimitiveState.ARCHIVED,
    (PrimitiveState.DISABLED, PrimitiveVerb.ARCHIVE): PrimitiveState.ARCHIVED,
    (PrimitiveState.ARCHIVED, PrimitiveVerb.RESTORE): PrimitiveState.DISABLED,
}


@pytest.mark.parametrize(("state", "verb"), list(itertools.product(PrimitiveState, PrimitiveVerb)))
def test_each_verb_leads_from_each_state_where_the_table_says(
    state: PrimitiveState, verb: PrimitiveVerb
) -> None:
    assert following(state, verb) == EXPECTED.get((state, verb))


def test_a_state_changes_only_along_these_pairs() -> None:
    pairs = {
        (state, target)
        for state, verbs in TRANSITIONS.items()
        for target in verbs.values()
        if state != target
    }
    assert pairs == {
        (PrimitiveState.DRAFT, PrimitiveState.PUBLISHED),
        (PrimitiveState.PUBLISHED, PrimitiveState.DISABLED),
        (PrimitiveState.DISABLED, PrimitiveState.PUBLISHED),
        (PrimitiveState.PUBLISHED, PrimitiveState.ARCHIVED),
        (PrimitiveState.DISABLED, PrimitiveState.ARCHIVED),
        (PrimitiveState.ARCHIVED, PrimitiveState.DISABLED),
    }


def test_every_state_has_its_row_and_no_published_tool_becomes_a_draft_again() -> None:
    assert set(TRANSITIONS) == set(PrimitiveState)
    assert PrimitiveState.DRAFT not in {
        target for verbs in TRANSITIONS.values() for target in verbs.values()
    }


def test_the_diagram_has_a_line_for_each_transition() -> None:
    lines = list(diagram())
    assert len(lines) == len(EXPECTED)
    assert "draft --publish--> published" in lines
