import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcphost.observability import trace

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "00f067aa0ba902b7"


@pytest.mark.requirement("base.trace-context")
@pytest.mark.parametrize("traceparent", [f"00-{TRACE}-{PARENT}-01", f"cc-{TRACE}-{PARENT}-01-more"])
def test_the_trace_id_of_the_client_is_used(traceparent):
    assert trace.trace_id(traceparent) == TRACE


@pytest.mark.requirement("base.trace-context")
@pytest.mark.parametrize(
    "traceparent",
    [
        "",
        "nonsense",
        f"00-{TRACE}-{PARENT}",
        f"00-{TRACE}-{PARENT}-01-more",
        f"00-{TRACE}-{PARENT}-1",
        f"ff-{TRACE}-{PARENT}-01",
        f"cc-{TRACE}-{PARENT}-01.more",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f" 00-{TRACE}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-01\n",
        f"cc-{TRACE}-{PARENT}-01-" + "x" * 600,
    ],
)
def test_an_invalid_traceparent_is_ignored_and_a_new_trace_begins(traceparent):
    assert trace.parse(traceparent) is None
    ids = [trace.trace_id(traceparent), trace.trace_id(None), trace.trace_id(None)]
    assert len(set(ids)) == 3
    assert all(re.fullmatch(r"[0-9a-f]{32}", one) for one in ids)


@given(st.text(max_size=80))
def test_any_traceparent_text_yields_a_valid_trace_id(text):
    assert re.fullmatch(r"[0-9a-f]{32}", trace.trace_id(text))
