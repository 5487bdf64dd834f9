"""A kind of tool that lives in memory, so that a test decides what "the code" says today."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel

from mcphost.audit.records import Actor
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.kinds.kind import Compiled, KindError
from mcphost.kinds.sorts import Sort
from mcphost.runtime.call import Call
from mcphost.runtime.journal import Journal
from mcphost.runtime.outcomes import Complete, Outcome
from mcphost.runtime.ports import Ports
from mcphost.runtime.schema import Problem

ACTOR = Actor.person(7, "olga")
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
OTHER = {"type": "object", "properties": {"words": {"type": "string"}}}


@dataclass(frozen=True, slots=True)
class Says:
    """A program that always says the same."""

    text: str

    async def advance(self, call: Call, journal: Journal, ports: Ports) -> Outcome:
        return Complete({"content": [{"type": "text", "text": self.text}]})


class ShelfConfig(BaseModel):
    """What a row refers to."""

    function: str


class Shelf:
    """Functions by reference, put there and taken away by the test. Stands in for Python tools."""

    name = "python"
    label = "Shelf"
    can_ask = False
    can_stream = False
    sorts = tuple(Sort)

    def __init__(self) -> None:
        self.functions: dict[str, Compiled] = {}
        self.broken: dict[str, Exception] = {}
        self.problems: list[Problem] = []
        self.compiled: list[str] = []

    def put(self, reference: str, **said: Any) -> None:
        """Have a function, `module.name`, described and taking a text unless told otherwise."""
        name = reference.rpartition(".")[2]
        plain = Compiled(name, TEXT, Says(reference), description=f"Does {name}.")
        self.functions[reference] = replace(plain, **said)

    def config_model(self, sort: Sort) -> type[BaseModel]:
        return ShelfConfig

    def compile(self, config: Mapping[str, Any], sort: Sort = Sort.TOOL) -> Compiled:
        reference = config.get("function")
        if not isinstance(reference, str):
            raise KindError({"function": ["A text is needed."]})
        self.compiled.append(reference)
        if reference in self.broken:
            raise self.broken[reference]
        if reference not in self.functions:
            raise KindError({"function": [f"There is no function {reference}."]})
        return self.functions[reference]

    def check(self) -> Sequence[Problem]:
        return self.problems

    def choices(self) -> Sequence[tuple[str, str]]:
        return [(reference, compiled.name) for reference, compiled in self.functions.items()]


def fields(function: str = "demo.echo", **others: Any) -> PrimitiveFields:
    """The fields of a tool that runs `function` under the function's own name."""
    name = function.rpartition(".")[2]
    return replace(PrimitiveFields(name=name, config={"function": function}), **others)
