"""The kind `python`: functions of the folders with tools, marked with `@tool`, `@prompt` or
`@resource`."""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mcphost.kinds.kind import Compiled, Kind, KindError
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.kinds.python.discovery import FoundFunctions, discover, forget_modules
from mcphost.runtime.schema import ArgumentProblem


class PythonConfig(BaseModel):
    """The configuration of a Python function in a catalogue row."""

    model_config = ConfigDict(extra="forbid")

    function: str = Field(
        title="Function", description="Module and function, e.g. `demo.echo`.", min_length=1
    )


@dataclass(frozen=True, slots=True)
class Reload:
    """What a reload of the folders changed. Functions are given by reference.

    `files` are new, changed or gone. `added`, `updated` and `removed` are functions; `updated` are those
    of changed files that run their new code. `kept` are functions whose new code was refused,
    so that the code before runs. `refused` are all problems, `notes` all advice.
    """

    files: tuple[Path, ...]
    added: tuple[str, ...]
    updated: tuple[str, ...]
    removed: tuple[str, ...]
    kept: tuple[str, ...]
    refused: tuple[ArgumentProblem, ...]
    notes: tuple[ArgumentProblem, ...]


class PythonKind(Kind):
    """`configure` is called once, at start, before anything else."""

    name = "python"
    label = "Python function"
    primitive_types: Collection[PrimitiveType] = tuple(PrimitiveType)

    def __init__(self) -> None:
        self._folders: tuple[Path, ...] = ()
        self._stamps: Stamps = {}
        self._registry = FoundFunctions()
        self._compiled: dict[str, Compiled] = {}  # replaced as a whole: other threads read it

    def configure(self, *folders: Path) -> None:
        """Load the functions of `folders`. Calling it again with the same folders has no effect."""
        if folders == self._folders:
            return
        self._folders = folders
        self._stamps = stamps(folders)  # before loading: a file that is saved meanwhile has changed
        self._registry = discover(*folders)
        self._compiled = self._registry.compiled

    def reload_if_changed(self) -> Reload | None:
        """Load all files again if one has changed; return what that changed, or None.

        For development: the modules are new, with their state. Calls under way go on with the code that
        they have. A function whose new code is refused keeps the code before.
        """
        now = stamps(self._folders)
        files = changed_files(self._stamps, now)
        if not files:
            return None
        self._stamps = now
        for path in files:
            drop_bytecode(path)
        forget_modules()
        before, loaded = self._registry, discover(*self._folders)
        kept = loaded.keep_refused(before)
        self._registry, self._compiled = loaded, loaded.compiled
        changed_stems = {self._stem(path) for path in files}
        old, new = before.functions.keys(), loaded.functions.keys()
        return Reload(
            files=files,
            added=tuple(sorted(new - old)),
            updated=tuple(
                name
                for name in sorted((new & old).difference(kept))
                if name.partition(".")[0] in changed_stems
            ),
            removed=tuple(sorted(old - new)),
            kept=kept,
            refused=self.check(),
            notes=self.notes(),
        )

    def _stem(self, path: Path) -> str:
        """Return the name under which a file, or the package that it is in, is loaded."""
        folder = next(folder for folder in self._folders if path.is_relative_to(folder))
        return path.relative_to(folder).parts[0].removesuffix(".py")

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
        compiled = self._compiled.get(reference)
        if compiled is None:
            raise KindError({"function": [self._registry.why_not(reference)]})
        return compiled

    def functions(self) -> Mapping[str, Compiled]:
        """Return every function that is loaded, compiled, by reference."""
        return self._compiled

    def check(self) -> tuple[ArgumentProblem, ...]:
        """Return the problems of broken files and functions."""
        return tuple(self._registry.broken.values())

    def notes(self) -> tuple[ArgumentProblem, ...]:
        """Return advice on the code of functions that are served."""
        return tuple(self._registry.notes)

    def choices(self) -> tuple[tuple[str, str], ...]:
        """Return every function by reference, with its title, sorted by reference."""
        titles = [(name, compiled.title) for name, compiled in sorted(self.functions().items())]
        labels = [(name, f"{title} ({name})" if title else name) for name, title in titles]
        return tuple(labels)


python_kind = PythonKind()
"""The instance that the platform uses."""


Stamps = Mapping[Path, tuple[int, int]]
"""Time of change in nanoseconds and size of each file."""


def stamps(folders: Sequence[Path]) -> Stamps:
    """Return the stamps of all Python files in the folders and in those below them."""
    read: dict[Path, tuple[int, int]] = {}
    for path in _python_files(folders):
        with suppress(OSError):  # an editor may replace it at this moment
            status = path.stat()
            read[path] = status.st_mtime_ns, status.st_size
    return read


def changed_files(before: Stamps, after: Stamps) -> tuple[Path, ...]:
    """Return the files that are new, changed or gone, by path."""
    return tuple(sorted(path for path in {*before, *after} if before.get(path) != after.get(path)))


def drop_bytecode(path: Path) -> None:
    """Delete the compiled form of a file. Python takes it for current if the file has the same size and
    was changed in the same second."""
    with suppress(OSError):
        Path(cache_from_source(str(path))).unlink()


def _python_files(folders: Sequence[Path]) -> Iterator[Path]:
    for folder in folders:
        for parent, inner, files in os.walk(folder):
            inner[:] = [name for name in inner if name[0] != "." and name != "__pycache__"]
            yield from (Path(parent, file) for file in files if file.endswith(".py"))
