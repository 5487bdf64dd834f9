"""The parts of an HTTP request that the transport looks at."""

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from mcphost.protocol.headers import Headers


class HttpRequest(NamedTuple):
    """One HTTP request's line and headers. `slug` is whatever stood where a tenant's slug belongs;
    `began` is when it came (of `time.perf_counter`)."""

    method: str
    slug: str
    headers: Headers
    source: str
    began: float = 0.0

    @classmethod
    def from_scope(cls, scope: Mapping[str, Any], slug: str) -> "HttpRequest":
        client = scope.get("client")
        return cls(
            method=scope["method"],
            slug=slug,
            headers=Headers(scope["headers"]),
            source=client[0] if client else "",
            began=time.perf_counter(),
        )
