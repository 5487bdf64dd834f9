"""The tools of this repository, as the platform loads them."""

from functools import cache
from pathlib import Path
from typing import Any

from mcphost.kinds.kind import Compiled
from mcphost.kinds.python.kind import PythonKind
from mcphost.protocol.schemas import check_schema
from mcphost.runtime.journal import EMPTY
from mcphost.runtime.outcomes import Outcome
from mcphost.runtime.schema import Validator
from tests.kinds.rounds import Notes, a_call, ports

FOLDER = Path(__file__).parents[2] / "tools"


@cache
def kind() -> PythonKind:
    loaded = PythonKind()
    loaded.configure(FOLDER)
    return loaded


def compiled(reference: str) -> Compiled:
    return kind().compile({"function": reference})


def names(module: str) -> list[str]:
    """The references of a module's functions, in order."""
    return [name for name, _ in kind().choices() if name.startswith(f"{module}.")]


async def call(
    reference: str, arguments: dict[str, Any] | None = None, notes: Notes | None = None
) -> Outcome:
    """One call of a tool by a client without capabilities."""
    return await compiled(reference).program.advance(a_call(arguments), EMPTY, ports(notes))


def assert_listable(tool: Compiled) -> None:
    """A tool has words and schemas that may be listed."""
    assert tool.description
    assert check_schema(tool.input_schema, role="input") == ()
    if tool.output_schema is not None:
        assert check_schema(tool.output_schema, role="output") == ()
        Validator(tool.output_schema)
