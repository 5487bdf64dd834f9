"""Cursors of paged lists (spec: server/utilities/pagination).

A cursor is a sealed token, good on every node, bound to the tenant and to the caller's scopes; it
names the last entry shown, so that a list which changes meanwhile still goes on in order.
"""

import hashlib

import orjson

from mcphost.protocol.errors import INTERNAL_ERROR, ProtocolError, invalid_params
from mcphost.runtime.call import Principal
from mcphost.sealing.tokens import Purpose, SealError
from mcphost.serving import opening


async def issue(principal: Principal, method: str, last: str) -> str:
    """A cursor to what follows `last` in the list of `method`.

    Raises ProtocolError (INTERNAL_ERROR) for a tenant whose salt was destroyed.
    """
    payload = orjson.dumps([method, _scopes(principal), last])
    try:
        return await opening.seal(Purpose.CURSOR, principal.tenant, payload)
    except SealError as error:
        message = "This list goes on, and nothing can be sealed for this tenant to go on with"
        raise ProtocolError(INTERNAL_ERROR, message) from error


async def read(principal: Principal, method: str, cursor: str) -> str:
    """The name after which the page starts.

    Raises ProtocolError (INVALID_PARAMS) for a cursor that is not ours, of another tenant, another
    list, or of a caller with other scopes.
    """
    try:
        payload = await opening.unseal(Purpose.CURSOR, principal.tenant, cursor)
    except SealError:
        raise invalid() from None
    of, scopes, last = orjson.loads(payload)
    if of != method or scopes != _scopes(principal):
        raise invalid()
    name: str = last
    return name


def invalid() -> ProtocolError:
    return invalid_params("params.cursor is not a cursor of this list; start again without one")


def _scopes(principal: Principal) -> str:
    return hashlib.sha256(" ".join(sorted(principal.scopes)).encode()).hexdigest()[:16]
