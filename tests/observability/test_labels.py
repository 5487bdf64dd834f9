"""The closed sets of labels name all that the rooms above know, and nothing else."""

from mcphost.catalogue.kinds import KINDS
from mcphost.kinds.sorts import Sort
from mcphost.observability import labels
from mcphost.protocol.errors import HTTP_STATUS
from mcphost.protocol.legacy.opening import INITIALIZE
from mcphost.runtime.outcomes import FailureKind
from mcphost.serving import records
from mcphost.serving.dispatch import HANDLERS, STANDING
from mcphost.serving.legacy.methods import OWN


def test_every_error_code_has_a_name_of_its_own():
    assert set(labels.CODES) == set(HTTP_STATUS)
    assert len(set(labels.CODES.values())) == len(labels.CODES)


def test_every_method_that_is_served_is_named():
    assert {*HANDLERS, *STANDING, *OWN, INITIALIZE} <= set(labels.METHODS)


def test_every_kind_is_named():
    assert set(KINDS) <= set(labels.KINDS)


def test_every_sort_is_named():
    assert set(map(str, Sort)) == set(labels.SORTS)


def test_every_end_of_a_round_is_named():
    words = ("COMPLETE", "TOOL_ERROR", "INPUT_REQUIRED", "YIELDED", "CANCELLED")
    told = {getattr(records, word) for word in words}
    assert {*map(str, FailureKind), *told} == set(labels.OUTCOMES)
