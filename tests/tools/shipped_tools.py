"""The tools, prompts and resources of this repository and of the conformance suite, as the platform
loads them."""

from functools import cache
from pathlib import Path
from typing import Any

from mcphost.kinds.kind import Compiled
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.kinds.python.kind import PythonKind
from mcphost.protocol.schemas import check_schema
from mcphost.runtime.journal import EMPTY
from mcphost.runtime.outcomes import Complete, Outcome
from mcphost.runtime.schema import Validator
from tests.kinds.rounds import Notes, a_call, ports

FOLDER = Path(__file__).parents[2] / "tools"
SUITE = Path(__file__).parents[1] / "conformance" / "tools"
"""What the conformance suite expects."""


@cache
def kind() -> PythonKind:
    loaded = PythonKind()
    loaded.configure(FOLDER, SUITE)
    return loaded


def compiled(reference: str) -> Compiled:
    return kind().compile({"function": reference})


def names(module: str, *sorts: PrimitiveType) -> list[str]:
    """The references of a module's functions, in order; only those of some sorts if any are named."""
    every = [name for name, _ in kind().choices() if name.startswith(f"{module}.")]
    return [name for name in every if not sorts or compiled(name).primitive_type in sorts]


async def call(
    reference: str, arguments: dict[str, Any] | None = None, notes: Notes | None = None
) -> Outcome:
    """One call of a tool by a client without capabilities."""
    return await compiled(reference).program.advance(a_call(arguments), EMPTY, ports(notes))


async def read(
    reference: str, arguments: dict[str, str] | None = None, uri: str = "test://asked"
) -> Outcome:
    """What is read of a resource, or got of a prompt, by who asked for `uri`."""
    asked = a_call(arguments)._replace(target=uri)
    return await compiled(reference).program.advance(asked, EMPTY, ports())


async def suggested(reference: str, argument: str, typed: str) -> list[str]:
    """What is suggested for an argument, of which something was typed."""
    completer = compiled(reference).completer
    assert completer is not None
    asked = {"argument": {"name": argument, "value": typed}, "context": {"arguments": {}}}
    outcome = await completer.advance(a_call(asked), EMPTY, ports())
    assert isinstance(outcome, Complete), outcome
    values: list[str] = outcome.result["completion"]["values"]
    return values


def assert_listable(tool: Compiled) -> None:
    """A tool, prompt or resource has words and schemas that may be listed."""
    assert tool.description
    assert check_schema(tool.input_schema, role="input") == ()
    if tool.output_schema is not None:
        assert check_schema(tool.output_schema, role="output") == ()
        Validator(tool.output_schema)
