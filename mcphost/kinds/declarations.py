"""What the code of a function declares, as JSON for other processes, which may lack the function.

They list it, validate arguments against it and decide about its calls, but do not run it.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, Final

from mcphost.kinds.kind import Compiled
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.protocol.prompts import PromptArgument
from mcphost.runtime.call import Call
from mcphost.runtime.journal import Journal
from mcphost.runtime.outcomes import Failed, Failure, FailureKind, Outcome
from mcphost.runtime.ports import Ports
from mcphost.runtime.program import TaskSupport

ABSENT: Final = "This server process does not have the code of this function; retry"
NO_PROCESS: Final = "This is published, but no running server process has its code"
UNREADABLE: Final = (ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What `read` raises for what `write` did not write."""
_PROGRAMS: Final = frozenset({"program", "completer"})


class AbsentProgram:
    """The program of a function that only other processes have: each round fails, and may be retried."""

    async def advance(self, call: Call, journal: Journal, ports: Ports) -> Outcome:
        """Return a failure that lets the client retry."""
        return Failed(Failure(FailureKind.OVERLOADED, ABSENT))


ABSENT_PROGRAM: Final = AbsentProgram()


def write(compiled: Compiled) -> str:
    """Return what a function declares, as JSON in ASCII.

    Raises ValueError, TypeError and RecursionError for what cannot be JSON.
    """
    names = [field.name for field in fields(Compiled) if field.name not in _PROGRAMS]
    declared = {name: getattr(compiled, name) for name in names}
    declared["arguments"] = [asdict(argument) for argument in compiled.arguments]
    declared["completes"] = compiled.completer is not None
    return json.dumps(declared, allow_nan=False)


def read(written: str) -> Compiled:
    """Return a function of another process from what it declares, with an `AbsentProgram`.

    Fields that this version does not know are left out. Raises UNREADABLE.
    """
    declared = json.loads(written)
    names = {field.name for field in fields(Compiled)} - _PROGRAMS
    return Compiled(
        **{
            **{name: value for name, value in declared.items() if name in names},
            "program": ABSENT_PROGRAM,
            "completer": ABSENT_PROGRAM if declared["completes"] else None,
            "primitive_type": PrimitiveType(declared["primitive_type"]),
            "task_support": TaskSupport(declared["task_support"]),
            "requires": tuple(declared["requires"]),
            "arguments": tuple(map(_argument, declared["arguments"])),
        }
    )


def _argument(declared: Mapping[str, Any]) -> PromptArgument:
    names = {field.name for field in fields(PromptArgument)}
    return PromptArgument(**{name: value for name, value in declared.items() if name in names})
