"""The closed sets of labels match the constants of higher packages."""

from mcphost.catalogue.kinds import KINDS
from mcphost.identity.attempts import Unchecked
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.observability import labels
from mcphost.protocol.errors import HTTP_STATUS
from mcphost.protocol.legacy.opening import INITIALIZE
from mcphost.runtime.outcomes import FailureKind
from mcphost.serving import load
from mcphost.serving.execution import audit_records
from mcphost.serving.legacy.methods import OWN
from mcphost.serving.methods.dispatch import HANDLERS, LONG_LIVED


def test_every_error_code_has_a_distinct_label():
    assert set(labels.CODES) == set(HTTP_STATUS)
    assert len(set(labels.CODES.values())) == len(labels.CODES)


def test_every_served_method_and_kind_has_a_label():
    assert {*HANDLERS, *LONG_LIVED, *OWN, INITIALIZE} <= set(labels.METHODS)
    assert set(KINDS) <= set(labels.KINDS)


def test_the_other_label_sets_match_the_constants_of_their_packages():
    words = ("COMPLETE", "TOOL_ERROR", "INPUT_REQUIRED", "YIELDED", "DEFERRED", "CANCELLED")
    ends = {getattr(audit_records, word) for word in words}
    assert {*map(str, FailureKind), *ends} == set(labels.OUTCOMES)
    assert set(map(str, PrimitiveType)) == set(labels.PRIMITIVE_TYPES)
    assert {load.DRAIN, load.LAG, load.SHARE, load.ABSENT_FUNCTION} == set(labels.SHED)
    assert {*map(str, Unchecked), "right", "wrong"} == set(labels.PASSWORDS)
