"""The kind `script`: Python pasted by a tenant, run in a sandbox."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from mcp_types import ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mcphost.kinds.config_problems import problem_sentence
from mcphost.kinds.kind import Compiled, InspectionBusyError, Kind, KindError, Sending
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.kinds.script.checker_messages import checked_rows
from mcphost.kinds.script.differences import differences_in
from mcphost.kinds.script.program import Script, ScriptProgram
from mcphost.kinds.script.sendings import misplaced_secrets, sendings_in
from mcphost.kinds.script.signature import (
    MAX_CHARACTERS,
    ScriptProblemError,
    Signature,
    signature_of,
)
from mcphost.kinds.script.surroundings import stubs
from mcphost.observability import counters, health
from mcphost.runtime.program import TaskSupport
from mcphost.sandbox.check_slots import ChecksBusyError
from mcphost.sandbox.pool import MAX_PROBLEMS, Sandbox
from mcphost.sandbox.processes import WorkerLostError

WAIT_SECONDS: Final = 10.0
"""How long saving a script waits until it can be checked."""


class ScriptConfig(BaseModel):
    """The configuration of a script in a catalogue row."""

    model_config = ConfigDict(extra="forbid")

    code: str = Field(
        title="Code",
        description="Python with one public function: that is the tool.",
        min_length=1,
        max_length=MAX_CHARACTERS,
    )
    annotations: ToolAnnotations = Field(
        default_factory=ToolAnnotations,
        title="Annotations",
        description="What the tool does, for clients: `readOnlyHint`, `idempotentHint`, …",
    )
    tasks: TaskSupport = Field(
        TaskSupport.NEVER,
        title="As a task",
        description="When a call becomes a task, which outlives its request.",
    )


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a look at a script finds: problems, each with `line`, `column` and `message`, and the
    schema of its arguments, None while its function cannot be read."""

    problems: Sequence[Mapping[str, Any]]
    input_schema: Mapping[str, Any] | None


class ScriptKind(Kind):
    """Implements `kinds.kind.Kind`. All scripts of the process share one sandbox."""

    name = "script"
    label = "Script"
    primitive_types: Collection[PrimitiveType] = (PrimitiveType.TOOL,)

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self._compiled = lru_cache(maxsize=4096)(self._compile)

    def config_model(self, primitive_type: PrimitiveType) -> type[BaseModel]:
        return ScriptConfig

    def compile(
        self, config: Mapping[str, Any], primitive_type: PrimitiveType = PrimitiveType.TOOL
    ) -> Compiled:
        """Compile a script, without checking its types. Raises KindError."""
        read = _validate_config(config)
        hints = read.annotations.model_dump_json(by_alias=True, exclude_none=True)
        return self._compiled(read.code, hints, read.tasks)

    def inspect(self, config: Mapping[str, Any], tenant: str) -> Mapping[str, list[str]]:
        """Return the problems of a tenant's script that is to be saved, by field: what `compile`
        refuses, and what the type checker finds. Blocks for a moment. Raises InspectionBusyError."""
        try:
            inspection = self.inspect_code(_validate_config(config).code, tenant, WAIT_SECONDS)
        except KindError as error:
            return error.problems
        except ChecksBusyError as busy:
            waiting = {"code": [f"{busy} Save the script again in a moment."]}
            raise InspectionBusyError(waiting) from None
        except WorkerLostError as lost:
            return {"code": [f"The script could not be checked: {lost}"]}
        problems = [
            _at(problem["line"], problem["column"], problem["message"])
            for problem in inspection.problems
        ]
        return {"code": problems} if problems else {}

    def inspect_code(self, code: str, tenant: str, wait_seconds: float = 0.0) -> Inspection:
        """Return what `inspect` finds in the code, for an editor. Blocks. Raises ChecksBusyError,
        WorkerLostError."""
        try:
            signature = signature_of(code)
        except ScriptProblemError as problem:
            return Inspection([_problem(problem)], None)
        declared = stubs(waits=signature.waits)
        problems = [_problem(text) for text in (*misplaced_secrets(code), *differences_in(code))]
        for row in checked_rows(code, self.sandbox.check(tenant, code, declared, wait_seconds)):
            # An import that fails ends the check, and is a problem already.
            if not (problems and row["message"].startswith("ModuleNotFoundError")):
                problems.append(row)
        return Inspection(problems[:MAX_PROBLEMS], signature.input_schema)

    def sendings_of(self, config: Mapping[str, Any]) -> Sequence[Sending]:
        """Return the addresses and secrets that the code names as literals."""
        code = config.get("code")
        return sendings_in(code) if isinstance(code, str) else ()

    def _compile(self, code: str, hints: str, tasks: TaskSupport) -> Compiled:
        signature = _signature(code)
        annotations = ToolAnnotations.model_validate_json(hints)
        return Compiled(
            name=signature.name,
            input_schema=signature.input_schema,
            output_schema=signature.output_schema,
            description=signature.description,
            annotations=annotations.model_dump(mode="json", by_alias=True, exclude_none=True),
            program=ScriptProgram(Script(code, signature), self.sandbox),
            task_support=tasks,
        )


def _validate_config(config: Mapping[str, Any]) -> ScriptConfig:
    try:
        return ScriptConfig.model_validate(config)
    except ValidationError as error:
        problems: dict[str, list[str]] = {}
        for detail in error.errors(include_url=False, include_input=False):
            path = ".".join(map(str, detail["loc"]))
            problems.setdefault(path, []).append(problem_sentence(detail))
        raise KindError(problems) from None


def _signature(code: str) -> Signature:
    try:
        return signature_of(code)
    except ScriptProblemError as problem:
        raise KindError({"code": [_at(problem.line, problem.column, str(problem))]}) from None


def _problem(problem: ScriptProblemError) -> Mapping[str, Any]:
    return {"line": problem.line, "column": problem.column, "message": str(problem)}


def _at(line: int, column: int, message: str) -> str:
    return f"Line {line}, column {column}: {message}"


script_kind = ScriptKind(Sandbox())
"""The instance that the platform uses."""
health.inform("sandbox", script_kind.sandbox.facts)
counters.measure("sandbox_workers_busy", lambda: script_kind.sandbox.in_use)
counters.measure("sandbox_workers_idle", lambda: script_kind.sandbox.idle)
counters.measure("sandbox_waiting", lambda: script_kind.sandbox.waiting)
counters.measure(
    "sandbox_own_users", lambda: int(script_kind.sandbox.status.get("own_user", False))
)
