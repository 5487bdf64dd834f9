"""A request of a session as it is kept beside its stream, for a process that has to go on with it."""

import orjson

from mcphost.serving.incoming import Incoming


def write(incoming: Incoming) -> bytes:
    """The request as it is sealed. Who made it is in there to be held against what holds by then."""
    exchange, principal = incoming.exchange, incoming.principal
    meta = exchange.meta
    return orjson.dumps(
        {
            "id": exchange.id,
            "method": exchange.method,
            "params": exchange.params,
            "progress_token": meta.progress_token,
            "log_level": meta.log_level,
            "principal": [principal.kind, principal.id, principal.token_id],
            "scopes": sorted(principal.scopes),
            "quota": list(incoming.quota),
            "leg": incoming.leg.hex,
            "source": incoming.source,
            "size": incoming.size,
            "trace_id": incoming.trace_id,
        }
    )
