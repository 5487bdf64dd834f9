"""A kind of tool in memory, so that a test decides what "the code" currently contains."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from mcphost.audit.records import Actor
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.kinds.kind import Compiled, KindError, Sending
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.runtime.call import Call
from mcphost.runtime.journal import Journal
from mcphost.runtime.outcomes import Complete, Outcome
from mcphost.runtime.ports import Ports
from mcphost.runtime.schema import ArgumentProblem

ACTOR = Actor.system("olga")
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
OTHER = {"type": "object", "properties": {"words": {"type": "string"}}}


@dataclass(frozen=True, slots=True)
class Says:
    """A program that always returns the same."""

    text: str

    async def advance(self, call: Call, journal: Journal, ports: Ports) -> Outcome:
        return Complete({"content": [{"type": "text", "text": self.text}]})


class ShelfConfig(BaseModel):
    """The configuration of a row: its function."""

    function: str


class Shelf:
    """Functions by reference, added and removed by the test. Replaces the Python kind."""

    name = "python"
    label = "Shelf"
    primitive_types = tuple(PrimitiveType)

    def __init__(self) -> None:
        self.functions: dict[str, Compiled] = {}
        self.broken: dict[str, Exception] = {}
        self.problems: list[ArgumentProblem] = []
        self.compiled: list[str] = []

    def put(self, reference: str, **said: Any) -> None:
        """Add a function, `module.name`; by default with a description and one text argument."""
        name = reference.rpartition(".")[2]
        plain = Compiled(name, TEXT, Says(reference), description=f"Does {name}.")
        self.functions[reference] = replace(plain, **said)

    def config_model(self, primitive_type: PrimitiveType) -> type[BaseModel]:
        return ShelfConfig

    def compile(
        self, config: Mapping[str, Any], primitive_type: PrimitiveType = PrimitiveType.TOOL
    ) -> Compiled:
        reference = config.get("function")
        if not isinstance(reference, str):
            raise KindError({"function": ["A text is needed."]})
        self.compiled.append(reference)
        if reference in self.broken:
            raise self.broken[reference]
        if reference not in self.functions:
            raise KindError({"function": [f"There is no function {reference}."]})
        return self.functions[reference]

    def check(self) -> Sequence[ArgumentProblem]:
        return self.problems

    def sendings_of(self, config: Mapping[str, Any]) -> Sequence[Sending]:
        return ()

    def secrets_of(self, config: Mapping[str, Any]) -> Collection[str]:
        return ()

    def choices(self) -> Sequence[tuple[str, str]]:
        return [(reference, compiled.name) for reference, compiled in self.functions.items()]


def fields(function: str = "demo.echo", **others: Any) -> PrimitiveFields:
    """Return the fields of a tool that runs `function` under the function's own name."""
    name = function.rpartition(".")[2]
    return replace(PrimitiveFields(name=name, config={"function": function}), **others)
