"""Equal JSON values have equal digests."""

import pytest

from mcphost.protocol.json_values import digest


def test_a_digest_ignores_the_order_of_keys_and_nothing_else():
    assert digest({"a": 1, "b": [2, 3]}) == digest({"b": [2, 3], "a": 1})
    others = [{"a": 1}, {"a": 1.5}, {"a": "1"}, {"a": True}, {"a": None}, {"b": 1}, [1], [[1]], {}]
    assert len({digest(other) for other in others}) == len(others)


def test_a_digest_is_short_and_safe_in_a_url():
    assert digest({}) == "RBNvo1WzZ4oRRq0W9-hknpT7T8If536DEMBg9hyq_4o"


@pytest.mark.parametrize("value", [2**64, -(2**63) - 1, "\ud800", {5: 5}, object(), {"a": {1}}])
def test_values_without_a_canonical_json_form_have_no_digest(value):
    with pytest.raises(ValueError, match=r".+"):
        digest(value)
