"""The envelope of results (spec: basic/index "ResultType" and "_meta", server/utilities/caching)."""

from collections.abc import Mapping
from typing import Any, Final, Literal

import orjson
from mcp_types import SERVER_INFO_META_KEY

CacheScope = Literal["public", "private"]

COMPLETE: Final = "complete"
INPUT_REQUIRED: Final = "input_required"
TASK: Final = "task"


def complete(result: Mapping[str, Any], server: Mapping[str, Any]) -> dict[str, Any]:
    """Build a method's final result.

    `server` is our `Implementation` (`{"name": …, "version": …}`). Every other key of the result's
    own `_meta` is kept; neither argument is changed.
    """
    meta = {**result.get("_meta", {}), SERVER_INFO_META_KEY: server}
    return {**result, "resultType": COMPLETE, "_meta": meta}


def cacheable(result: Mapping[str, Any], ttl_ms: int, scope: CacheScope) -> dict[str, Any]:
    """Add caching hints to a result: required for lists, reads and `server/discover`.

    `ttl_ms` is in milliseconds, 0 for "stale at once"; below 0 raises ValueError. All pages of a
    list must have one scope. `public` is only for results that are the same for every caller.
    """
    if ttl_ms < 0:
        raise ValueError(f"ttlMs must not be negative, not {ttl_ms}")
    return {**result, "ttlMs": ttl_ms, "cacheScope": scope}


def input_required(
    requests: Mapping[str, Mapping[str, Any]], state: str | None, server: Mapping[str, Any]
) -> dict[str, Any]:
    """Build an interim result with input requests (spec: basic/patterns/mrtr).

    `requests` maps a key to `{"method": …, "params": …}`. If it is empty, `inputRequests` is left
    out and there must be a `state`: the client then retries at once (SEP-2322, Load Shedding).
    Raises ValueError if both are missing: the client could not continue.
    """
    if not requests and state is None:
        raise ValueError("an input_required result needs input requests or a state")
    result: dict[str, Any] = {"resultType": INPUT_REQUIRED}
    if requests:
        result["inputRequests"] = requests
    if state is not None:
        result["requestState"] = state
    result["_meta"] = {SERVER_INFO_META_KEY: server}
    return result


def task(handle: Mapping[str, Any], server: Mapping[str, Any]) -> dict[str, Any]:
    """Build a result that is a task handle, in place of the request's own result (SEP-2663)."""
    return {**handle, "resultType": TASK, "_meta": {SERVER_INFO_META_KEY: server}}


def prepared(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same result with its objects and arrays encoded, for results that are sent many times."""
    return {
        name: orjson.Fragment(orjson.dumps(value)) if isinstance(value, Mapping | list) else value
        for name, value in result.items()
    }
