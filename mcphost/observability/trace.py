"""The W3C trace context that a client sends in `_meta.traceparent` (spec: basic/index, `_meta`).

The trace id is written to logs and records, so that they can be matched with a client's trace.
Spans, if they are exported, belong to the same trace.
"""

import os
import re
from random import Random

# version-traceid-parentid-flags; later versions may append fields, version ff is forbidden.
_TRACEPARENT = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<parent>[0-9a-f]{16})-[0-9a-f]{2}"
    r"(?P<more>-.*)?"
)
_NO_TRACE = "0" * 32
_NO_PARENT = "0" * 16
_MAX_HEADER = 512

# A trace id is not a secret, and one is made for every request: no system random numbers.
_random = Random()  # noqa: S311
os.register_at_fork(after_in_child=_random.seed)


def trace_id(traceparent: str | None) -> str:
    """The trace id (32 hex digits) of `traceparent`, or a new one if it is missing or invalid."""
    parsed = parse(traceparent) if traceparent else None
    return parsed or f"{_random.getrandbits(128) or 1:032x}"


def parse(traceparent: str | None) -> str | None:
    """The trace id in a valid `traceparent` (W3C Trace Context 3.2.2), else None."""
    if not traceparent or len(traceparent) > _MAX_HEADER:
        return None
    match = _TRACEPARENT.fullmatch(traceparent)
    if match is None or match["version"] == "ff":
        return None
    if match["version"] == "00" and match["more"] is not None:
        return None
    if match["trace"] == _NO_TRACE or match["parent"] == _NO_PARENT:
        return None
    return match["trace"]
