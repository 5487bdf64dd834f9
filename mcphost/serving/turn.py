"""One round about to run."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from mcphost.audit.redaction import Redactor
from mcphost.kinds.sorts import Sort
from mcphost.runtime.call import Call, PrincipalKind
from mcphost.runtime.journal import Journal
from mcphost.runtime.program import Program
from mcphost.serving.incoming import Incoming
from mcphost.serving.resumed import FRESH, Resumed
from mcphost.serving.states import Bound, bound


class ResultRedactor(Protocol):
    """Takes out of a method's whole result what must not be written."""

    def redact(self, result: Mapping[str, Any]) -> Mapping[str, Any]: ...


class Primitive(Protocol):
    """What of a tool, a prompt, a resource or a template a round needs to know.

    `read_only` says that running it changes nothing, so that there is no need to have recorded the
    start. `time_limit` is in seconds, None for the platform's. `answer_within`, `claims` and `unasked`
    are as in `catalogue.snapshots.Snapshot`.
    """

    @property
    def name(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def sort(self) -> Sort: ...
    @property
    def version(self) -> str: ...
    @property
    def read_only(self) -> bool: ...
    @property
    def time_limit(self) -> float | None: ...
    @property
    def answer_within(self) -> float | None: ...
    @property
    def claims(self) -> bool: ...
    @property
    def unasked(self) -> bool: ...
    @property
    def program(self) -> Program: ...
    @property
    def input_redactor(self) -> Redactor: ...
    @property
    def output_redactor(self) -> ResultRedactor: ...


class Turn(NamedTuple):
    """What runs, for which call, from which journal, because of which request.

    `resumed` is what the request brought along, nothing if it is the call's first.
    """

    incoming: Incoming
    primitive: Primitive
    call: Call
    journal: Journal
    resumed: Resumed = FRESH

    @property
    def bound(self) -> Bound:
        """What a state of this call is good for."""
        call = self.call
        return bound(call.principal, call.method, call.target, call.arguments)

    @property
    def leg(self) -> int:
        """Which request of the call this is, from 1."""
        state = self.resumed.state
        return 1 if state is None else state.legs + 1

    @property
    def must_run_once(self) -> bool:
        """Whether the round has to be claimed, to run in one process only, and once: it takes in
        answers, or goes on where another process left it, and its program or its caller asks for
        that. A call that is held is nobody else's anyway.
        """
        state = self.resumed.state
        if (
            self.incoming.held is not None
            or state is None
            or (state.asked and not self.resumed.taken)
        ):
            return False
        # Who has no name holds all that it takes to use the state, so it is good once only.
        return self.primitive.claims or self.call.principal.kind is PrincipalKind.ANONYMOUS

    @property
    def was_shed(self) -> bool:
        """Whether the call has been moved to another process before."""
        state = self.resumed.state
        return state is not None and state.shed
