"""The kind `python`: functions of the folder with tools, marked with `@tool`, `@prompt` or `@resource`."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mcphost.kinds.kind import Compiled, KindError
from mcphost.kinds.python.completers import completer_of
from mcphost.kinds.python.discovery import Found, discover
from mcphost.kinds.python.function import PythonFunction
from mcphost.kinds.python.program import PythonProgram
from mcphost.kinds.python.returns import Returns
from mcphost.kinds.sorts import Sort
from mcphost.runtime.schema import Problem
from mcphost.sdk import PromptDefinition, ResourceDefinition, ToolDefinition


class PythonConfig(BaseModel):
    """What a catalogue row says of a Python tool."""

    model_config = ConfigDict(extra="forbid")

    function: str = Field(
        title="Function", description="Module and function, e.g. `demo.echo`.", min_length=1
    )


class PythonKind:
    """Fills `kinds.kind.Kind`. `configure` is called once, at start, before anything else."""

    name = "python"
    label = "Python function"
    sorts: Collection[Sort] = tuple(Sort)
    can_ask = True
    can_stream = True

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._found = Found()
        self._compiled: dict[str, Compiled] = {}

    def configure(self, folder: Path) -> None:
        """Take the tools from `folder`. The same folder again changes nothing."""
        if folder == self._folder:
            return
        self._folder = folder
        self._found = discover(folder)
        self._compiled = {name: _compile(tool) for name, tool in self._found.functions.items()}

    def config_model(self, sort: Sort) -> type[BaseModel]:
        """The same for all: which function."""
        return PythonConfig

    def compile(self, config: Mapping[str, Any], sort: Sort = Sort.TOOL) -> Compiled:
        """The function that `config` refers to. Raises KindError if there is none, or says why not."""
        try:
            reference = PythonConfig.model_validate(config).function
        except ValidationError as error:
            problems: dict[str, list[str]] = {}
            for each in error.errors():
                problems.setdefault(".".join(map(str, each["loc"])), []).append(each["msg"])
            raise KindError(problems) from None
        if reference not in self._compiled:
            raise KindError({"function": [self._found.why_not(reference)]})
        return self._compiled[reference]

    def check(self) -> Sequence[Problem]:
        """The files and functions that are broken."""
        return tuple(self._found.broken.values())

    def choices(self) -> Sequence[tuple[str, str]]:
        """Every function by reference, with its title."""
        tools = sorted(self._found.functions.items())
        return tuple((name, _label(name, tool.definition.title)) for name, tool in tools)


def _label(reference: str, title: str) -> str:
    return f"{title} ({reference})" if title else reference


def _compile(offered: PythonFunction) -> Compiled:
    definition = offered.definition
    said = Compiled(
        name=offered.name,
        sort=offered.sort,
        input_schema=offered.parameters.schema,
        title=definition.title,
        description=offered.description,
        author_version=definition.version,
        requires=tuple(definition.requires),
        time_limit=definition.time_limit,
        program=PythonProgram(offered),
        arguments=offered.arguments,
        completer=completer_of(offered),
        answer_within=definition.answer_within,
        claims=definition.claims,
        unasked=definition.unasked,
    )
    match definition:
        case ToolDefinition():
            schema = offered.returns.schema if isinstance(offered.returns, Returns) else None
            hints = _json(definition.annotations)
            return replace(said, output_schema=schema, annotations=hints)
        case ResourceDefinition():
            hints = _json(definition.annotations) if definition.annotations else {}
            uri, mime_type = definition.uri, definition.mime_type
            return replace(said, uri=uri, mime_type=mime_type, annotations=hints)
        case PromptDefinition():
            return said


def _json(annotations: BaseModel) -> dict[str, Any]:
    return annotations.model_dump(mode="json", by_alias=True, exclude_none=True)


python_kind = PythonKind()
"""The one that the platform uses."""
