"""Rounds of programs that a test defines."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import uuid4

from django.utils import timezone

from mcphost.audit.redaction import Redactor
from mcphost.catalogue.redaction import ResultRedactor
from mcphost.catalogue.snapshots import ToolSnapshot
from mcphost.protocol.exchange import Exchange, Meta
from mcphost.protocol.headers import Headers
from mcphost.protocol.revisions import REVISION, Era
from mcphost.runtime.call import Call
from mcphost.runtime.journal import EMPTY, Journal
from mcphost.runtime.outcomes import Outcome
from mcphost.runtime.ports import Ports
from mcphost.runtime.program import Program
from mcphost.runtime.schema import Validator
from mcphost.serving.context import NO_QUOTA, Incoming, Turn
from mcphost.tenants.selectors import TenantSnapshot
from tests.kinds.rounds import TENANT, a_call


@dataclass(frozen=True, slots=True)
class Does:
    """A program that runs a test's function."""

    what: Callable[[], Awaitable[Outcome]]

    async def advance(self, call: Call, journal: Journal, ports: Ports) -> Outcome:
        return await self.what()


def tenant(**said: object) -> TenantSnapshot:
    plain: dict[str, object] = {
        "title": "Acme",
        "icon": "",
        "instructions": "",
        "allowed_origins": (),
        "outgoing_hosts": (),
        "public": False,
        "metadata_documents_only": False,
        "calls_per_minute": None,
        "concurrent_calls": None,
        "created_at": timezone.now(),
        "closed_at": None,
    }
    return TenantSnapshot(id=TENANT, slug="acme", **{**plain, **said})  # type: ignore[arg-type]


def turn(what: Callable[[], Awaitable[Outcome]], *, read_only: bool = True) -> Turn:
    """The first round of a call to a tool with this program."""
    call = a_call({"text": "hello"})
    incoming = Incoming(
        http_request_id=uuid4(),
        exchange=Exchange(1, "tools/call", {"name": "tool"}, Meta(), Era.MODERN, REVISION),
        headers=Headers([]),
        principal=call.principal,
        tenant=tenant(),
        quota=NO_QUOTA,
        source="192.0.2.1",
        size=321,
        trace_id="",
    )
    return Turn(incoming, _tool(Does(what), read_only), call, EMPTY)


def _tool(program: Program, read_only: bool) -> ToolSnapshot:
    return ToolSnapshot(
        id=uuid4(),
        name="tool",
        kind="python",
        version="1+00000000",
        scopes=frozenset(),
        listing={},
        encoded=b"{}",
        param_headers=(),
        input_validator=Validator({"type": "object"}),
        output_validator=None,
        input_redactor=Redactor(),
        output_redactor=ResultRedactor(Redactor()),
        program=program,
        annotations={},
        read_only=read_only,
        idempotent=False,
        time_limit=None,
        requires=(),
        answer_within=None,
        claims=False,
        unasked=False,
    )
