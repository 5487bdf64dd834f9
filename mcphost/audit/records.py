"""Actions, actors, and entries before they are written."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any, NamedTuple
from uuid import UUID, SafeUUID

from mcphost.runtime.call import Call, Principal

TASK_CANCELLED = "task.cancelled"
"""The task of a call was cancelled, by its client or by a user."""
TASK_RETRIED = "task.retried"
"""A user let the next round of a task run at once."""
CALL_CANCELLED = "call.cancelled"
"""A user cancelled a call that waited for input. `reason` says why; the caller is told."""
CANCELLATIONS = (TASK_CANCELLED, CALL_CANCELLED)
"""Entries after which a call without a final result is cancelled."""
BESIDE_ROUNDS = (TASK_CANCELLED, TASK_RETRIED, CALL_CANCELLED)
"""What users, and the client of a task, did to a call: no round ran."""
ROUND_STARTED = "round.started"
"""A round of a primitive that is not read-only: committed before it runs."""
ROUND_FINISHED = "round.finished"
"""A round that ended, with any outcome."""
QUESTION_ASKED = "question.asked"
"""One question that a round ends with. `facts`: `key` (the author's), `question` (its digest),
`method`, `mode`. The payload is what is asked."""
ANSWER_RECEIVED = "answer.received"
"""One answer: committed before the round that acts on it.

`outcome` is `accept`, `decline`, `cancel`, or `unasked`. `facts`: `key`, `question`, `method`,
`evidence` (the client's word, or an expiry that this server observed), `seconds` (how long it took,
None if unknown), `sealed_by` (the ring key of the state that it came with). The payload is the
answer."""
ANSWER_REPEATED = "answer.repeated"
"""A request that repeated the same answers and got the stored reply: nothing ran. `facts`: `keys`
(the author's, of the answers), `claim` (the number of the claim)."""
STATE_REFUSED = "state.refused"
"""A request whose state was refused. It is not trusted, so the entry has no round, and a call only
if that is known otherwise."""
ANSWER_REFUSED = "answer.refused"
MESSAGE_REFUSED = "message.refused"
"""A message of a round that was not allowed to be sent."""
REFUSALS = (STATE_REFUSED, ANSWER_REFUSED, MESSAGE_REFUSED)
"""Refused states, answers and outgoing messages. The reason is not sent to the client."""

INPUT_REQUIRED = "input_required"
"""The outcome of a round that ended with questions."""
GOES_ON = (INPUT_REQUIRED, "yielded", "deferred", "cancelled", "overloaded")
"""Outcomes of rounds after which a call may go on. Every other one is a final result."""


# Ids are no secrets. Random bytes from the operating system would cost more than all the rest here.
_random = Random()  # noqa: S311
os.register_at_fork(after_in_child=_random.seed)

# The same as `UUID(int=…)`, without its checks, which always pass here: three ids per call.
_bare, _set, _safe = UUID.__new__, object.__setattr__, SafeUUID.unknown


def new_id() -> UUID:
    """Make a UUIDv7 (RFC 9562, 6.2 method 3), so that rows written together are stored together.

    The 12 bits after the milliseconds count 4096ths of a millisecond: ids made one after the other
    in a process sort in that order.
    """
    milliseconds, rest = divmod(time.time_ns(), 1_000_000)
    fraction = (rest << 12) // 1_000_000
    number = (milliseconds << 16 | 0x7000 | fraction) << 64 | 1 << 63 | _random.getrandbits(62)
    fresh = _bare(UUID)
    _set(fresh, "int", number)
    _set(fresh, "is_safe", _safe)
    return fresh


@dataclass(frozen=True, slots=True)
class Actor:
    """The actor of an entry. `id` is stable; `label` is for display, as it was at the time."""

    kind: str
    id: str = ""
    label: str = ""
    token_id: str = ""

    @classmethod
    def system(cls, label: str = "") -> "Actor":
        """The platform itself: a command, a start-up, a clean-up."""
        return cls("system", "", label)

    @classmethod
    def person(cls, user_id: int | str, label: str) -> "Actor":
        """A signed-in user."""
        return cls("person", str(user_id), label)

    def is_person(self, user_id: int | str) -> bool:
        """Whether the actor is the user of that id."""
        return self.kind == "person" and self.id == str(user_id)

    @classmethod
    def of(cls, principal: Principal) -> "Actor":
        """The caller of a request."""
        return cls(str(principal.kind), principal.id, principal.label, principal.token_id or "")


class Record(NamedTuple):
    """One entry to be written: the columns of `models.Entry`, and the payload, stored separately.

    A tuple because some ten thousand are made and unpacked per second. `facts` and `payload` are
    JSON; the payload is already redacted. Neither may be changed after the record is submitted.
    """

    id: UUID
    at: datetime
    tenant: UUID | None = None
    call: UUID | None = None
    http_request_id: UUID | None = None
    round: int | None = None
    duration_us: int | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None
    action: str = ""
    actor_kind: str = ""
    actor_id: str = ""
    actor_label: str = ""
    token_id: str = ""
    method: str = ""
    target: str = ""
    target_version: str = ""
    revision: str = ""
    era: str = ""
    delivery: str = ""
    client_name: str = ""
    client_version: str = ""
    outcome: str = ""
    reason: str = ""
    source: str = ""
    trace_id: str = ""
    facts: Mapping[str, Any] | None = None
    payload: Mapping[str, Any] | None = None


class RecordedRequest(NamedTuple):
    """The HTTP request under which rounds are recorded. `source` is the peer's address."""

    id: UUID
    source: str = ""
    bytes_in: int | None = None


class Ending(NamedTuple):
    """How a round ended: `outcome` in one word, `reason` for display, the duration, the payload.

    `facts` are further facts, as JSON.
    """

    outcome: str
    reason: str = ""
    duration_us: int | None = None
    bytes_out: int | None = None
    payload: Mapping[str, Any] | None = None
    facts: Mapping[str, Any] | None = None


NO_ENDING = Ending("")
"""For entries of rounds that have not ended."""


def of_round(
    action: str,
    call: Call,
    request: RecordedRequest,
    at: datetime,
    ending: Ending,
    version: str = "",
) -> Record:
    """The entry of a round, or of something that belongs to one; `action` says which.

    `version` is that of the primitive that ran.
    """
    principal, client = call.principal, call.client
    return Record(
        new_id(),
        at,
        call.tenant,
        call.id,
        request.id,
        call.round,
        ending.duration_us,
        request.bytes_in,
        ending.bytes_out,
        action,
        str(principal.kind),
        principal.id,
        principal.label,
        principal.token_id or "",
        call.method,
        call.target,
        version,
        call.revision,
        str(call.era),
        str(call.delivery),
        client.name,
        client.version,
        ending.outcome,
        ending.reason,
        request.source,
        call.trace_id,
        ending.facts,
        ending.payload,
    )
