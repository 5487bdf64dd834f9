"""Prompts, resources and templates for tests: a kind whose programs are named in the config."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from pydantic import BaseModel

from mcphost.catalogue import services
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.identity.services import TokenRequest, issue
from mcphost.kinds.kind import Compiled, Kind, Sending
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.protocol.prompts import PromptArgument
from mcphost.runtime.call import Call
from mcphost.runtime.journal import Journal
from mcphost.runtime.outcomes import Complete, Failed, Failure, FailureKind, Outcome
from mcphost.runtime.ports import Ports
from mcphost.serving.database import in_database
from tests.cast import ACTOR, Cast

GUARD = "mcp:guarded"
CANARY = "canary-of-the-inside"
WORDS = tuple(f"word{number:03}" for number in range(150))


def _contents(call: Call, **content: Any) -> Outcome:
    if call.method == "prompts/get":
        block = {"type": "text", "text": content.get("text", "")}
        return Complete({"messages": [{"role": "user", "content": block}]})
    return Complete({"contents": [{"uri": call.target, **content}]})


async def _echo(call: Call) -> Outcome:
    return _contents(call, mimeType="text/plain", text=orjson.dumps(call.arguments).decode())


async def _picture(call: Call) -> Outcome:
    return _contents(call, mimeType="image/png", blob="iVBORw0KGgo=")


GALLERY: Sequence[Mapping[str, Any]] = (
    {"type": "text", "text": "Look:"},
    {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
    {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
    {"type": "resource_link", "uri": "docs:handbook", "name": "handbook"},
    {"type": "resource", "resource": {"uri": "docs:a", "mimeType": "text/plain", "text": "a"}},
    {"type": "resource", "resource": {"uri": "docs:b", "mimeType": "a/b", "blob": "AA=="}},
)


async def _gallery(call: Call) -> Outcome:
    return Complete({"messages": [{"role": "assistant", "content": one} for one in GALLERY]})


async def _crash(call: Call) -> Outcome:
    raise RuntimeError(CANARY)


async def _fail(call: Call) -> Outcome:
    return Failed(Failure(FailureKind.CRASHED, "It failed.", CANARY))


async def _refuse(call: Call) -> Outcome:
    return Failed(Failure(FailureKind.TOOL_ERROR, "Not on Sundays."))


async def _oddity(call: Call) -> Outcome:
    return Complete({"messages": object(), "contents": object()})


waiting: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
"""Set once a program hangs, by target."""


async def _hang(call: Call) -> Outcome:
    waiting[call.target].set()
    await asyncio.Event().wait()
    raise AssertionError


async def _complete(call: Call) -> Outcome:
    """Suggest words that begin with the value, and end with the arguments filled in before."""
    begin = call.arguments["argument"]["value"]
    end = "".join(call.arguments["context"]["arguments"].values())
    values = [word + end for word in WORDS if word.startswith(begin)]
    return Complete({"completion": {"values": values, "total": len(values)}})


DOES: Mapping[str, Callable[[Call], Awaitable[Outcome]]] = {
    "echo": _echo,
    "picture": _picture,
    "gallery": _gallery,
    "crash": _crash,
    "fail": _fail,
    "refuse": _refuse,
    "oddity": _oddity,
    "hang": _hang,
    "complete": _complete,
}


@dataclass(frozen=True)
class Program:
    does: str

    async def advance(self, call: Call, journal: Journal, ports: Ports) -> Outcome:
        return await DOES[self.does](call)


class Config(BaseModel):
    does: str
    uri: str = ""
    completes: str = ""
    takes: tuple[str, ...] = ()


def _schema(name: str) -> dict[str, Any]:
    return {"type": "string", "writeOnly": name == "password"}


class MadeKind(Kind):
    """Implements `kinds.kind.Kind`. A name in `takes` with a `!` is required."""

    name = "made"
    label = "Made up"
    primitive_types: Collection[PrimitiveType] = tuple(PrimitiveType)

    def config_model(self, primitive_type: PrimitiveType) -> type[BaseModel]:
        return Config

    def compile(
        self, config: Mapping[str, Any], primitive_type: PrimitiveType = PrimitiveType.TOOL
    ) -> Compiled:
        asked = Config.model_validate(config)
        arguments = tuple(
            PromptArgument(name.rstrip("!"), required=name.endswith("!")) for name in asked.takes
        )
        return Compiled(
            name=asked.does,
            description="Made up.",
            input_schema={
                "type": "object",
                "properties": {one.name: _schema(one.name) for one in arguments},
            },
            program=Program(asked.does),
            primitive_type=primitive_type,
            uri=asked.uri,
            mime_type="text/plain",
            arguments=arguments,
            completer=Program(asked.completes) if asked.completes else None,
        )

    def sendings_of(self, config: Mapping[str, Any]) -> Sequence[Sending]:
        return ()


MADE = MadeKind()


def publish(
    tenant: UUID, sort: PrimitiveType, name: str, does: str = "echo", uri: str = "", **said: Any
) -> UUID:
    """Publish one. `scopes`, `time_limit_seconds` as in PrimitiveFields; the rest is config."""
    own = {key: said.pop(key) for key in ("scopes", "time_limit_seconds") if key in said}
    config = {"does": does, "uri": uri, **said}
    fields = PrimitiveFields(name, config, primitive_type=sort, kind="made", **own)
    row = services.publish(services.create(tenant, fields, ACTOR).id, ACTOR)
    return row.id


def offer(tenant: UUID) -> None:
    """Publish several primitives of each type. Those named `guarded` need GUARD."""
    takes = ("code!", "style")
    publish(tenant, PrimitiveType.PROMPT, "review", takes=takes, completes="complete")
    publish(
        tenant, PrimitiveType.PROMPT, "guarded", takes=takes, completes="complete", scopes=(GUARD,)
    )
    publish(tenant, PrimitiveType.RESOURCE, "handbook", uri="docs:handbook")
    publish(tenant, PrimitiveType.RESOURCE, "logo", "picture", uri="docs:logo")
    publish(tenant, PrimitiveType.RESOURCE, "guarded", uri="docs:guarded", scopes=(GUARD,))
    notes = "users://{name}/notes{?of}"
    publish(tenant, PrimitiveType.TEMPLATE, "notes", uri=notes, completes="complete")
    publish(tenant, PrimitiveType.TEMPLATE, "files", uri="file:///{+path}")
    vault = "vault:{key}"
    publish(
        tenant, PrimitiveType.TEMPLATE, "guarded", uri=vault, completes="complete", scopes=(GUARD,)
    )


async def token_with(cast: Cast, *scopes: str, **limits: Any) -> str:
    """A new token of the owner of `acme`."""
    wanted = TokenRequest("special", scopes, **limits)
    return (await in_database(issue, cast.acme.id, cast.owner.user, wanted, actor=ACTOR)).plaintext
