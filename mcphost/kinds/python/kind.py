"""The kind `python`: functions of the folders with tools, marked with `@tool`, `@prompt` or
`@resource`."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mcphost.kinds.kind import Compiled, Kind, KindError
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.kinds.python.discovery import FoundFunctions, discover
from mcphost.runtime.schema import ArgumentProblem


class PythonConfig(BaseModel):
    """The configuration of a Python function in a catalogue row."""

    model_config = ConfigDict(extra="forbid")

    function: str = Field(
        title="Function", description="Module and function, e.g. `demo.echo`.", min_length=1
    )


class PythonKind(Kind):
    """`configure` is called once, at start, before anything else."""

    name = "python"
    label = "Python function"
    primitive_types: Collection[PrimitiveType] = tuple(PrimitiveType)

    def __init__(self) -> None:
        self._folders: tuple[Path, ...] = ()
        self._registry = FoundFunctions()
        self._compiled: dict[str, Compiled] = {}

    def configure(self, *folders: Path) -> None:
        """Load the functions of `folders`. Calling it again with the same folders has no effect."""
        if folders == self._folders:
            return
        self._folders = folders
        self._registry = discover(*folders)
        self._compiled = self._registry.compiled

    def config_model(self, primitive_type: PrimitiveType) -> type[BaseModel]:
        """Return the model, the same for all primitive types: the function."""
        return PythonConfig

    def compile(
        self, config: Mapping[str, Any], primitive_type: PrimitiveType = PrimitiveType.TOOL
    ) -> Compiled:
        """Return the function that `config` refers to. Raises KindError with the reason if there is
        none."""
        try:
            reference = PythonConfig.model_validate(config).function
        except ValidationError as error:
            problems: dict[str, list[str]] = {}
            for detail in error.errors():
                problems.setdefault(".".join(map(str, detail["loc"])), []).append(detail["msg"])
            raise KindError(problems) from None
        if reference not in self._compiled:
            raise KindError({"function": [self._registry.why_not(reference)]})
        return self._compiled[reference]

    def functions(self) -> Mapping[str, Compiled]:
        """Return every function that is loaded, compiled, by reference."""
        return self._compiled

    def check(self) -> Sequence[ArgumentProblem]:
        """Return the problems of broken files and functions."""
        return tuple(self._registry.broken.values())

    def notes(self) -> Sequence[ArgumentProblem]:
        """Return advice on the code of functions that are served."""
        return tuple(self._registry.notes)

    def choices(self) -> tuple[tuple[str, str], ...]:
        """Return every function by reference, with its title, sorted by reference."""
        titles = [(name, compiled.title) for name, compiled in sorted(self._compiled.items())]
        labels = [(name, f"{title} ({name})" if title else name) for name, title in titles]
        return tuple(labels)


python_kind = PythonKind()
"""The instance that the platform uses."""
