"""Repeated requests: a POST with the Idempotency-Key of an earlier one gets the response of that one."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

import orjson
from django.http import HttpResponse
from django.utils.crypto import salted_hmac
from rest_framework.request import Request

from mcphost.api.problems import ProblemError, ProblemType
from mcphost.identity import idempotency
from mcphost.identity.idempotency import StoredReply

HEADER: Final = "Idempotency-Key"
REPLAYED: Final = "Idempotent-Replayed"
_SALT: Final = "mcphost.api.idempotency"
_KEY: Final = re.compile(r"[!-~]{1,255}")
_STORED_HEADERS: Final = ("ETag", "Location", "Content-Type")


@dataclass(frozen=True, slots=True)
class Repeatable:
    """A request with an Idempotency-Key: whose key it is, and the digest of what is requested."""

    caller: str
    key: str
    digest: str

    def replay(self) -> HttpResponse | None:
        """Return the stored response; None if there is none. Raises ProblemError if it belongs to
        another request."""
        stored = idempotency.stored_reply(self.caller, self.key)
        if stored is None:
            return None
        if stored.request != self.digest:
            message = (
                f"This {HEADER} was sent with another request. Use a new one for each creation."
            )
            raise ProblemError(ProblemType.KEY_REUSED, message)
        headers = {**stored.headers, REPLAYED: "true"}
        return HttpResponse(stored.body, status=stored.status, headers=headers)

    def reserve(self) -> bool:
        """Reserve the key, first in a transaction; False if a response is stored under it meanwhile."""
        return idempotency.reserve_key(self.caller, self.key, self.digest)

    def claim(self) -> bool:
        """Claim the key before acting outside of a transaction; False if it has a response."""
        return idempotency.claim_key(self.caller, self.key, self.digest)

    def release(self) -> None:
        """End the claim of a request that was refused or failed."""
        idempotency.release_key(self.caller, self.key)

    def store(self, response: HttpResponse, shown_once: Collection[str]) -> None:
        """Store the response, last in the transaction; the members `shown_once` become null."""
        body = response.content
        if shown_once:
            body = orjson.dumps({**orjson.loads(body), **dict.fromkeys(shown_once)})
        headers = {name: response.headers[name] for name in _STORED_HEADERS if name in response}
        reply = StoredReply(self.digest, response.status_code, headers, body)
        idempotency.store_reply(self.caller, self.key, reply)


def repeatable(request: Request, caller: str, sent: Any) -> Repeatable | None:
    """Return a POST with an Idempotency-Key; None for any other request. Raises ProblemError."""
    key = request.headers.get(HEADER)
    if key is None or request.method != "POST":
        return None
    if _KEY.fullmatch(key) is None:
        message = f"{HEADER} must have 1 to 255 printable ASCII characters."
        raise ProblemError(ProblemType.MALFORMED, message)
    requested = orjson.dumps([request.get_full_path(), sent], option=orjson.OPT_SORT_KEYS)
    # Keyed: a body may have a secret, which must not be guessed from the stored digest.
    digest = salted_hmac(_SALT, requested, algorithm="sha256").hexdigest()
    return Repeatable(caller, key, digest)
