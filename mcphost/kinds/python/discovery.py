"""Finds the functions in folders with tools. Each `*.py` and each package is imported once. A mistake in
a file or a function is reported with its line, and does not affect others."""

import importlib.util
import logging
import os
import re
import stat
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Final

from mcphost.kinds.functions.schemas import SignatureError
from mcphost.kinds.kind import Compiled
from mcphost.kinds.python.advice import Note, notes_on
from mcphost.kinds.python.attempts import Fault, attempt, printable
from mcphost.kinds.python.compiling import compile_function
from mcphost.kinds.python.function import Definition, PythonFunction, inspect_function
from mcphost.runtime.schema import ArgumentProblem
from mcphost.sdk import ToolDefinition
from mcphost.sdk.marking import ATTRIBUTE, collect_marked

PREFIX = "mcphost_tools"
"""Modules are imported as `mcphost_tools.<stem>`, so that they cannot shadow other modules, and can
import each other by `from .<stem> import …`."""
LOAD_SECONDS: Final = 10.0
"""How long the import of a file may take, and the inspection of each of its functions. All tenants
wait for it at start; a file that loads more than that can do so at its first call."""
MAX_FILE_BYTES: Final = 8 * 1024 * 1024
"""The size of a file with tools. Reading it is not bounded by the time limit."""
MAX_REFERENCE: Final = 200
"""The characters of a reference in a grant."""


@dataclass(slots=True)
class FoundFunctions:
    """The functions of some folders, by reference (`<stem>.<name>`), the problems, by reference or
    stem, and advice on functions that are served."""

    functions: dict[str, PythonFunction] = field(default_factory=dict)
    compiled: dict[str, Compiled] = field(default_factory=dict)
    broken: dict[str, ArgumentProblem] = field(default_factory=dict)
    notes: list[ArgumentProblem] = field(default_factory=list)
    marked: list[FunctionType] = field(default_factory=list)
    """All functions that the files mark, also those that are not offered."""

    def why_not(self, reference: str) -> str:
        """Return the reason why there is no such function."""
        for name in (reference, reference.partition(".")[0]):
            if name in self.broken:
                return str(self.broken[name])
        return f"There is no tool function {reference!r}."

    def keep_refused(self, before: "FoundFunctions") -> tuple[str, ...]:
        """Take over the functions of an earlier discovery that this one refused; return them, sorted."""
        kept = tuple(
            name
            for name in sorted(before.functions)
            if name not in self.functions and self.broken.keys() & {name, name.partition(".")[0]}
        )
        for name in kept:
            self.functions[name] = before.functions[name]
            self.compiled[name] = before.compiled[name]
        return kept


def discover(*folders: Path, seconds: float = LOAD_SECONDS) -> FoundFunctions:
    """Import the folders' files, inspect and compile every marked function. Raises nothing but
    KeyboardInterrupt, if the operator interrupts the process.

    A problem's path is `<folder>/<file>:<line>`. Files and packages whose name begins with `_` are only
    imported by others, and those of a name that an earlier folder has are broken.
    """
    registry = FoundFunctions()
    paths_by_stem: dict[str, Path] = {}
    _begin(folders)
    for folder in folders:
        for path in _files(folder, registry):
            first = paths_by_stem.setdefault(_stem(path), path)
            if first is path:
                _load_functions(path, registry, seconds)
            else:
                location = printable(str(path))
                message = f"{printable(str(first))} has the same name"
                registry.broken[location] = ArgumentProblem(location, message)
    return registry


def forget_modules() -> None:
    """Forget all modules of tools, so that the next discovery imports them again."""
    for name in list(sys.modules):
        if name.startswith(f"{PREFIX}."):
            del sys.modules[name]


def _begin(folders: Sequence[Path]) -> None:
    """Make the folders one package, and forget modules of its names that were loaded before."""
    stems: set[str] = set()
    for folder in folders:
        with suppress(OSError):  # which `_files` reports
            stems.update(path.stem for path in folder.iterdir())
    for name in list(sys.modules):
        if name.startswith(f"{PREFIX}.") and name.split(".")[1] in stems:
            del sys.modules[name]
    package = ModuleType(PREFIX)
    package.__path__ = [str(folder.absolute()) for folder in folders]
    sys.modules[PREFIX] = package
    importlib.invalidate_caches()


def _files(folder: Path, registry: FoundFunctions) -> list[Path]:
    """Return the files and the packages of a folder, these as their `__init__.py`."""
    try:
        paths = sorted(folder.absolute().iterdir())
        files = [path for path in paths if path.match("[!_]*.py")]
        for inner in paths:
            if not inner.match("[!_.]*") or not inner.is_dir():
                continue
            if (inner / "__init__.py").is_file():
                files.append(inner / "__init__.py")
            elif any(inner.glob("*.py")):
                message = "this folder has Python files, but no __init__.py: it is not loaded"
                path = printable(f"{folder.name}/{inner.name}")
                registry.broken[path] = ArgumentProblem(path, message)
        return files
    except OSError as error:
        message = "there is no such folder of tools"
        if not isinstance(error, FileNotFoundError):
            message = f"this folder of tools cannot be read: {error.strerror}"
        registry.broken[folder.name] = ArgumentProblem(printable(str(folder)), message)
        return []


def _load_functions(path: Path, registry: FoundFunctions, seconds: float) -> None:
    marked: Fault | dict[str, tuple[FunctionType, Definition]] | None = _file_fault(path)
    if marked is None:
        with _kept_state():
            marked = attempt(partial(_load, path, registry.marked), path, seconds)
    if isinstance(marked, Fault):
        _forget(_module_name(path))
        message = marked.message + _hint(marked.message, path)
        location = _source_location(path, marked.line or 1)
        registry.broken[_stem(path)] = ArgumentProblem(location, message)
        return
    report_unreachable(path, registry, [definition for _, definition in marked.values()])
    for name, (function, definition) in marked.items():
        reference = f"{_stem(path)}.{name}"
        inspected = attempt(partial(_inspect, reference, function, definition), path, seconds)
        source = Path(function.__code__.co_filename)  # of a package it may be another file
        source = source if source.is_relative_to(path.parent) else path
        if isinstance(inspected, Fault):
            location = _source_location(source, function.__code__.co_firstlineno)
            message = f"{printable(name)}: {inspected.message}"
            registry.broken[reference] = ArgumentProblem(location, message)
        else:
            registry.functions[reference], registry.compiled[reference], notes = inspected
            registry.notes += [
                ArgumentProblem(
                    _source_location(source, note.line), f"{printable(name)}: {note.message}"
                )
                for note in notes
            ]


def _file_fault(path: Path) -> Fault | None:
    """Return why a file is not read at all: a pipe or a device would block its reader, or never end."""
    try:
        status = path.stat()
    except OSError:
        return None  # loading it says why
    if not stat.S_ISREG(status.st_mode):
        return Fault("this is no regular file", 0)
    if status.st_size > MAX_FILE_BYTES:
        return Fault(f"the file has more than {MAX_FILE_BYTES:,} bytes", 0)
    return None


def report_unreachable(path: Path, registry: FoundFunctions, offered: Sequence[Definition]) -> None:
    """Report functions of a file that are marked and that no name of the file leads to."""
    offered_ids = {id(definition) for definition in offered}
    visited: set[int] = set()
    for function in registry.marked:
        definition = vars(function).get(ATTRIBUTE)
        if not _is_of(function, _module_name(path), path):
            continue
        is_marked_twice = id(function) in visited
        visited.add(id(function))
        if id(definition) in offered_ids and not is_marked_twice:
            continue
        if path.stem == "__init__" and function.__name__ == function.__qualname__:
            continue  # a package offers what its `__init__` imports
        decorator = type(definition).__name__.removesuffix("Definition").lower()
        name = function.__qualname__
        if is_marked_twice:
            reason = (
                "it has two such decorators, of which the first line counts: write two functions"
            )
        elif "<locals>" in name:
            reason = "it is defined inside another function, and is no name of the file"
        elif "." in name:
            reason = "it is a method of a class: write a function outside of it, which may call it"
        else:
            reason = (
                "its name is another object's below, or a decorator above returns another function"
            )
        source = Path(function.__code__.co_filename)
        source = source if source.is_relative_to(path.parent) else path
        line = function.__code__.co_firstlineno
        message = f"{printable(name)}: @{decorator} does not offer it: {reason}"
        # With its line: a function that is offered may have this name.
        key = printable(f"{_stem(path)}.{name}:{line}")
        registry.broken[key] = ArgumentProblem(_source_location(source, line), message)


def _forget(name: str) -> None:
    """Forget a module that cannot be imported, and those that it was importing when it was given up."""
    sys.modules.pop(name, None)
    for module_name, module in list(sys.modules.items()):
        if module_name.startswith(f"{PREFIX}.") and getattr(
            module.__spec__, "_initializing", False
        ):
            del sys.modules[module_name]


def _hint(message: str, path: Path) -> str:
    """Return how a module that was not found is imported, if it is beside the file."""
    missing = re.search(r"No module named '(\w+)'", message)
    folder = path.parent
    if missing and any(
        (folder / f"{missing[1]}{end}").is_file() for end in (".py", "/__init__.py")
    ):
        return f" (write `from .{missing[1]} import …`)"
    return ""


def _load(path: Path, collected: list[FunctionType]) -> dict[str, tuple[FunctionType, Definition]]:
    """Import a file, and return the functions that it defines and marks, by name. All that are marked
    meanwhile are added to `collected`."""
    if not _stem(path).isidentifier():
        raise ImportError("the file name is not a valid Python module name")
    name = _module_name(path)
    module = sys.modules.get(name)  # another file may have imported it
    if module is None:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        collect_marked(collected, partial(spec.loader.exec_module, module))
    # No other attribute of the values is read: what a file defines may raise at each of them.
    functions = {
        str(key): value for key, value in vars(module).items() if type(value) is FunctionType
    }
    return {
        key: (function, definition)
        for key, function in functions.items()
        if _is_of(function, name, path)  # otherwise the module has imported it
        and isinstance(definition := vars(function).get(ATTRIBUTE), Definition)
    }


def _inspect(
    reference: str, function: FunctionType, definition: Definition
) -> tuple[PythonFunction, Compiled, tuple[Note, ...]]:
    """Inspect and compile a function, and read its code. Raises SignatureError, and what its author's code raises."""
    if not reference.rpartition(".")[2].isidentifier():
        raise SignatureError("its name is not one that Python code can write")
    if len(reference) > MAX_REFERENCE:
        raise SignatureError(f"file and name have more than {MAX_REFERENCE} characters")
    inspected = inspect_function(reference, function, definition)
    hints = definition.annotations if isinstance(definition, ToolDefinition) else None
    notes = notes_on(function, inspected.parameters.context, hints)
    return inspected, compile_function(inspected), notes


@contextmanager
def _kept_state() -> Iterator[None]:
    """Undo what a file changes, when it is imported, of the streams, the filters of warnings, the log,
    the modules that the platform has loaded, and a recursion limit that it lowers. Reading standard
    input ends at once: it is the operator's.

    Other changes of the process stay, such as attributes of modules that a file replaces.
    """
    streams, modules = (sys.stdin, sys.stdout, sys.stderr), dict(sys.modules)
    depth, root = sys.getrecursionlimit(), logging.getLogger()
    handlers, level, disabled = root.handlers[:], root.level, root.manager.disable
    with warnings.catch_warnings(), Path(os.devnull).open() as nothing:
        sys.stdin = nothing
        try:
            yield
        finally:
            sys.stdin, sys.stdout, sys.stderr = streams
            sys.setrecursionlimit(max(depth, sys.getrecursionlimit()))
            changed = [
                name for name, module in modules.items() if sys.modules.get(name) is not module
            ]
            sys.modules.update({name: modules[name] for name in changed})
            root.handlers[:] = handlers
            root.setLevel(level)
            logging.disable(disabled)


def _is_of(function: FunctionType, name: str, path: Path) -> bool:
    """Whether a function is the module's own: one of its file, or of any file of its package."""
    own = function.__module__
    return own == name or (path.stem == "__init__" and str(own).startswith(f"{name}."))


def _stem(path: Path) -> str:
    """Return the name of a file without its ending, or that of a package."""
    return path.parent.name if path.stem == "__init__" else path.stem


def _module_name(path: Path) -> str:
    return f"{PREFIX}.{_stem(path)}"


def _source_location(path: Path, line: int) -> str:
    return printable(f"{path.parent.name}/{path.name}:{line}")
