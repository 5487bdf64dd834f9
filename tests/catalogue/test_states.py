"""Tests of every pair of state and verb."""

import itertools

import pytest

from mcphost.catalogue.states import PrimitiveState, PrimitiveVerb, following

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
def test_each_verb_makes_the_transitions_of_the_table(state, verb):
    assert following(state, verb) == EXPECTED.get((state, verb))
