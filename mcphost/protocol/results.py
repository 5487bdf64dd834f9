"""The envelope of results (spec: basic/index "ResultType" and "_meta", server/utilities/caching)."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from mcp_types import SERVER_INFO_META_KEY

CacheScope = Literal["public", "private"]

COMPLETE: Final = "complete"
INPUT_REQUIRED: Final = "input_required"


def complete(result: Mapping[str, Any], server: Mapping[str, Any]) -> dict[str, Any]:
    """A method's result as the final answer.

    `server` is our `Implementation` (`{"name": …, "version": …}`). Every other key of the result's
    own `_meta` is kept; neither argument is changed.
    """
    return {**result, "resultType": COMPLETE, "_meta": _meta(result, server)}


def cacheable(result: Mapping[str, Any], ttl_ms: int, scope: CacheScope) -> dict[str, Any]:
    """The result with caching hints: lists, reads and `server/discover` must carry them.

    `ttl_ms` is in milliseconds, 0 for "stale at once"; below 0 raises ValueError. All pages of a
    list have one scope, and `public` only what is the same for every caller.
    """
    if ttl_ms < 0:
        raise ValueError(f"ttlMs must not be negative, not {ttl_ms}")
    return {**result, "ttlMs": ttl_ms, "cacheScope": scope}


def input_required(
    requests: Mapping[str, Mapping[str, Any]], state: str | None, server: Mapping[str, Any]
) -> dict[str, Any]:
    """An interim result that asks the client (spec: basic/patterns/mrtr).

    `requests` maps a key to `{"method": …, "params": …}`. It may be empty when there is a `state`:
    the client then comes back at once. With neither there is nothing to come back with:
    ValueError.
    """
    if not requests and state is None:
        raise ValueError("an input_required result needs input requests or a state")
    result: dict[str, Any] = {"resultType": INPUT_REQUIRED, "inputRequests": requests}
    if state is not None:
        result["requestState"] = state
    result["_meta"] = _meta(result, server)
    return result


def _meta(result: Mapping[str, Any], server: Mapping[str, Any]) -> dict[str, Any]:
    return {**result.get("_meta", {}), SERVER_INFO_META_KEY: server}
