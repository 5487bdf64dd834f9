"""Every kind of request, for a plain tool: admitted, refused, malformed.

Each is sent twice by a process that has cached nothing: the second goes by what the first left.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from mcphost.identity.services import TokenRequest, issue
from mcphost.serving.database import in_database
from mcphost.tenants.fields import TenantFields
from mcphost.tenants.roles import CALL_TOOLS, LIST_TOOLS
from mcphost.tenants.services import close_tenant, update_tenant
from tests.cast import ACTOR
from tests.equivalence.run import Run, Scenario, called
from tests.mcp import PREFIX, meta, request

PAGE = "https://app.example.com"
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
PLAIN = called("text", {"text": "hello"})


@dataclass(frozen=True)
class Sent:
    """One request. `who` is a person of the cast; empty headers are left out."""

    body: Any = field(default_factory=lambda: PLAIN)
    headers: Mapping[str, str] = field(default_factory=dict)
    who: str = "owner"
    tenant: str = "acme"
    verb: str = "POST"

    async def __call__(self, run: Run) -> None:
        token = getattr(run.cast, self.who).mcp_token if self.who else None
        fields = {"headers": self.headers, "tenant": self.tenant, "verb": self.verb}
        for _ in range(2):
            await run.post(self.body, token, **fields)


def _meta(**fields: Any) -> Mapping[str, Any]:
    body = called("text", {"text": "hello"})
    merged = {**meta(), **fields}
    body["params"]["_meta"] = {name: value for name, value in merged.items() if value is not None}
    return body


def _params(**fields: Any) -> Mapping[str, Any]:
    params = {**PLAIN["params"], **fields}
    return {**PLAIN, "params": {key: one for key, one in params.items() if one is not None}}


GOOD = {
    "valid": Sent(),
    "text beyond ASCII": Sent(called("text", {"text": "Grüße, 世界 \u2028 \x7f"})),
    "progress token that is a text": Sent(called("text", {"text": "a"}, progressToken="p")),
    "trace context": Sent(_meta(traceparent=TRACE, tracestate="a=b")),
    "log level": Sent(_meta(**{f"{PREFIX}logLevel": "info"})),
    "id that is a text": Sent({**PLAIN, "id": "é-7"}),
    "anonymous on a public tenant": Sent(who="", tenant="commons"),
    "header of the name in base64": Sent(headers={"mcp-name": "=?base64?dGV4dA==?="}),
}
ARGUMENTS = {
    "arguments left out": Sent(_params(arguments=None)),
    "unknown argument": Sent(called("text", {"text": "a", "other": 1})),
    "argument of another type": Sent(called("text", {"text": 5})),
    "unknown tool": Sent(called("no_such_tool")),
    "name left out": Sent(_params(name=None), {"mcp-name": ""}),
    "mirrored argument": Sent(called("regional", {"region": "eu"}), {"mcp-param-region": "eu"}),
    "mirrored argument that differs": Sent(
        called("regional", {"region": "eu"}), {"mcp-param-region": "us"}
    ),
}
HEADERS = {
    "method header that differs": Sent(headers={"mcp-method": "tools/list"}),
    "method header left out": Sent(headers={"mcp-method": ""}),
    "name header that differs": Sent(headers={"mcp-name": "other"}),
    "version header that differs": Sent(headers={"mcp-protocol-version": "2025-11-25"}),
    "unknown version": Sent(
        _meta(**{f"{PREFIX}protocolVersion": "1999-01-01"}), {"mcp-protocol-version": "1999-01-01"}
    ),
    "version in _meta left out": Sent(_meta(**{f"{PREFIX}protocolVersion": None})),
    "client's capabilities left out": Sent(_meta(**{f"{PREFIX}clientCapabilities": None})),
    "wrong content type": Sent(headers={"content-type": "text/plain"}),
    "wrong accept": Sent(headers={"accept": "text/html"}),
    "unknown host": Sent(headers={"host": "evil.example"}),
    "wrong origin": Sent(headers={"origin": PAGE}),
    "GET": Sent(verb="GET"),
    "preflight": Sent(b"", {"origin": PAGE, "access-control-request-headers": "x"}, verb="OPTIONS"),
    "session that does not exist": Sent(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "text"}},
        {"mcp-protocol-version": "2025-11-25", "mcp-session-id": "mcps1.abc.def"},
    ),
}
CALLERS = {
    "no credential": Sent(who=""),
    "wrong token": Sent(headers={"authorization": "Bearer wrong"}),
    "token of another tenant": Sent(who="stranger"),
    "unknown tenant": Sent(tenant="no-such-tenant"),
    "tool with a scope that the caller lacks": Sent(called("guarded", {"text": "a"})),
}
BODIES = {
    "invalid JSON": Sent(b'{"jsonrpc":'),
    "notification": Sent({"jsonrpc": "2.0", "method": "tools/call", "params": PLAIN["params"]}),
    "id that is null": Sent({**PLAIN, "id": None}),
    "other version of JSON-RPC": Sent({**PLAIN, "jsonrpc": "1.0"}),
    "params left out": Sent({"jsonrpc": "2.0", "id": 1, "method": "tools/call"}),
    "unknown method": Sent(request("tools/unknown")),
    "unreadable state": Sent(called("text", {"text": "a"}, fields={"requestState": "x"})),
}


async def _oversized(run: Run) -> None:
    run.settings.MCPHOST_BODY_LIMIT = 1000
    body = called("text", {"text": "x" * 1000})
    await Sent(body)(run)
    await Sent(body, {"content-length": str(len(orjson.dumps(body)))})(run)


async def _missing_scope(run: Run) -> None:
    wanted = TokenRequest("list only", (LIST_TOOLS,))
    owner = run.cast.owner.user
    issued = await in_database(issue, run.cast.acme.id, owner, wanted, actor=ACTOR)
    run.name(issued.id, "token without a scope")
    for _ in range(2):
        await run.post(PLAIN, issued.plaintext)


async def _over_its_limit(run: Run) -> None:
    wanted = TokenRequest("limited", (LIST_TOOLS, CALL_TOOLS), calls_per_minute=2)
    owner = run.cast.owner.user
    issued = await in_database(issue, run.cast.acme.id, owner, wanted, actor=ACTOR)
    run.name(issued.id, "limited token")
    for _ in range(3):
        run.clock.advance(10)
        await run.post(PLAIN, issued.plaintext)


async def _allowed_origin(run: Run) -> None:
    fields = TenantFields(title="Acme", allowed_origins=(PAGE,))
    await in_database(update_tenant, run.cast.acme.id, fields, actor=ACTOR)
    await Sent(headers={"origin": PAGE})(run)
    await Sent(headers={"origin": f"{PAGE}:444"})(run)
    await Sent(called("no_such_tool"), {"origin": PAGE})(run)


async def _closed_tenant(run: Run) -> None:
    await in_database(close_tenant, run.cast.acme.id, actor=ACTOR)
    await Sent()(run)


SPECIAL = {
    "oversized": _oversized,
    "token without the scope": _missing_scope,
    "token over its limit": _over_its_limit,
    "allowed origin": _allowed_origin,
    "closed tenant": _closed_tenant,
}

SCENARIOS = [
    Scenario(name, act, cold=True)
    for group in (GOOD, ARGUMENTS, HEADERS, CALLERS, BODIES, SPECIAL)
    for name, act in group.items()
]
