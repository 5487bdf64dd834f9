"""One tool in each kind that does what the argument `do` says, and the service behind two of them."""

import asyncio
from collections.abc import Mapping
from textwrap import dedent
from typing import Any
from uuid import UUID

import orjson

from mcphost.catalogue import services
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.kinds.http.replies import ANSWERS, ASKS
from mcphost.serving.database import in_database
from tests.cast import ACTOR, Cast
from tests.egress.conftest import Arrived, read_request, write
from tests.rounds.conftest import module

TOOL = "contract"
SCHEMA = {"type": "object", "properties": {"do": {"type": "string"}}, "required": ["do"]}
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
TURNS: Mapping[str, list[list[str]]] = {
    "once": [["a"]],
    "twice": [["a"], ["b"]],
    "beside": [["a", "b"]],
    "page": [["a"]],
    "user": [["a"]],
}
SCRIPT = '''
import asyncio

async def contract(do: str) -> dict:
    """Do what the test wants."""
    async def one(key: str) -> str:
        answer = await ask(key, key + "?", {"name": str})
        return answer["content"]["name"] if answer["action"] == "accept" else answer["action"]

    if do == "once":
        return {"got": [await one("a")]}
    if do == "twice":
        return {"got": [await one("a"), await one("b")]}
    if do == "beside":
        return {"got": await asyncio.gather(one("a"), one("b"))}
    if do == "page":
        await elicit_url("a", "a?", "https://pay.example.com/a")
        return {"got": ["agreed"]}
    if do == "fail":
        fail("it went wrong")
    if do == "hang":
        await http.post("BASE", json={"do": "hang"})
    return {"got": []}
'''


class Service:
    """Does what a request says, and asks for it. It keeps nothing but what is in the state."""

    def __init__(self) -> None:
        self.running = asyncio.Event()
        self.abandoned = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await read_request(reader, 1):
                if orjson.loads(request.body).get("do") == "hang":
                    self.running.set()
                    await reader.read(1)
                    self.abandoned.set()
                    return
                self._respond(request, writer)
        finally:
            writer.close()

    def _respond(self, request: Arrived, writer: asyncio.StreamWriter) -> None:
        sent = orjson.loads(request.body)
        got: list[str] = []
        if request.headers["content-type"] == ANSWERS:
            do, got = orjson.loads(sent["state"])
            assert sent["request"] == {"do": do}
            for key in sorted(sent["responses"]):
                answer = sent["responses"][key]
                got.append(answer.get("content", {}).get("name", answer["action"]))
        else:
            do = sent["do"]
        left = TURNS.get(do, [])
        while left and len(got) >= sum(map(len, TURNS[do])) - sum(map(len, left[1:])):
            left = left[1:]
        if do == "fail":
            write(writer, 500, b"it went wrong", Content_Type="text/plain")
        elif left:
            asked = {key: {"message": f"{key}?", "requestedSchema": FORM} for key in left[0]}
            state = orjson.dumps([do, got]).decode()
            body = orjson.dumps({"requests": asked, "state": state})
            write(writer, 200, body, Content_Type=ASKS)
        else:
            write(writer, 200, orjson.dumps({"got": got}), Content_Type="application/json")


def config(kind: str, delivery: str, base: str) -> dict[str, Any]:
    tasks = "always" if delivery.endswith("task") else "never"
    match kind:
        case "python":
            return {"function": "contract.plain" if tasks == "never" else "contract.task"}
        case "script":
            return {"code": dedent(SCRIPT).strip().replace("BASE", base), "tasks": tasks}
    return {
        "input_schema": SCHEMA,
        "request": {
            "url": base,
            "method": "POST",
            "body": {"type": "json", "value": {"do": "{arguments.do}"}},
        },
        "tasks": tasks,
    }


class Offer:
    """The tool of a kind, published at `acme`."""

    def __init__(self, cast: Cast, kind: str, delivery: str, service: Service, base: str) -> None:
        self.cast = cast
        self.kind = kind
        self.delivery = delivery
        self._base = base
        self._held: Any = module("contract") if kind == "python" else service
        self._id: UUID | None = None

    def _fields(self, **others: Any) -> PrimitiveFields:
        made = config(self.kind, self.delivery, self._base)
        return PrimitiveFields(TOOL, made, kind=self.kind, description="A tool.", **others)

    async def publish(self, **others: Any) -> None:
        """Publish the tool, or a new version of it."""

        def save() -> UUID:
            fields = self._fields(**others)
            if self.kind == "python":
                services.grant_function(self.cast.acme.id, fields.config["function"], ACTOR)
            if self._id is None:
                row = services.create(self.cast.acme.id, fields, ACTOR)
            else:
                row = services.update(self._id, fields, ACTOR)
            return services.publish(row.id, ACTOR).id

        self._id = await in_database(save)

    @property
    def id(self) -> UUID:
        assert self._id is not None
        return self._id

    async def runs(self) -> None:
        """Wait until a call hangs."""
        async with asyncio.timeout(15):
            await self._held.running.wait()

    async def is_abandoned(self) -> None:
        """Wait until what hung has noticed that the call is over."""
        async with asyncio.timeout(15):
            await self._held.abandoned.wait()
