"""Finds the functions in folders with tools. Each `*.py` is imported once. A mistake in a file, or in a
function, does not affect others."""

import importlib.util
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import FunctionType
from typing import Final

from mcphost.kinds.functions.schemas import SignatureError
from mcphost.kinds.kind import Compiled
from mcphost.kinds.python.attempts import Fault, attempt, printable
from mcphost.kinds.python.compiling import compile_function
from mcphost.kinds.python.function import Definition, PythonFunction, inspect_function
from mcphost.runtime.schema import ArgumentProblem
from mcphost.sdk.marking import ATTRIBUTE

PREFIX = "mcphost_tools"
"""Modules are imported as `mcphost_tools.<stem>`, so that they cannot shadow other modules."""
LOAD_SECONDS: Final = 10.0
"""How long the import of a file may take, and the inspection of each of its functions. All tenants
wait for it at start; a file that loads more than that can do so at its first call."""
MAX_REFERENCE: Final = 200
"""The characters of a reference in a grant."""


@dataclass(slots=True)
class FoundFunctions:
    """The functions of some folders, by reference (`<stem>.<name>`), and the problems, by reference or
    stem."""

    functions: dict[str, PythonFunction] = field(default_factory=dict)
    compiled: dict[str, Compiled] = field(default_factory=dict)
    broken: dict[str, ArgumentProblem] = field(default_factory=dict)

    def why_not(self, reference: str) -> str:
        """Return the reason why there is no such function."""
        for name in (reference, reference.partition(".")[0]):
            if name in self.broken:
                return str(self.broken[name])
        return f"There is no tool function {reference!r}."


def discover(*folders: Path, seconds: float = LOAD_SECONDS) -> FoundFunctions:
    """Import the folders' files, inspect and compile every marked function. Raises nothing but
    KeyboardInterrupt, if the operator interrupts the process.

    A problem's path is `<folder>/<file>:<line>`. Files whose name begins with `_` are ignored, and
    those of a name that an earlier folder has are broken.
    """
    found = FoundFunctions()
    taken: dict[str, Path] = {}
    for folder in folders:
        for path in _files(folder, found):
            first = taken.setdefault(path.stem, path)
            if first is path:
                _read(path, found, seconds)
            else:
                place = printable(str(path))
                message = f"{printable(str(first))} has the same name"
                found.broken[place] = ArgumentProblem(place, message)
    return found


def _files(folder: Path, found: FoundFunctions) -> list[Path]:
    try:
        return sorted(path for path in folder.absolute().iterdir() if path.match("[!_]*.py"))
    except OSError as error:
        message = "there is no such folder of tools"
        if not isinstance(error, FileNotFoundError):
            message = f"this folder of tools cannot be read: {error.strerror}"
        found.broken[folder.name] = ArgumentProblem(printable(str(folder)), message)
        return []


def _read(path: Path, found: FoundFunctions, seconds: float) -> None:
    sys.modules.pop(_module_name(path), None)  # of a folder that was loaded before
    with _kept_state():
        marked = attempt(partial(_load, path), path, seconds)
    if isinstance(marked, Fault):
        sys.modules.pop(_module_name(path), None)
        place = _place(path, marked.line or 1)
        found.broken[path.stem] = ArgumentProblem(place, marked.message)
        return
    for name, (function, definition) in marked.items():
        reference = f"{path.stem}.{name}"
        inspected = attempt(partial(_inspect, reference, function, definition), path, seconds)
        if isinstance(inspected, Fault):
            place = _place(path, function.__code__.co_firstlineno)
            message = f"{printable(name)}: {inspected.message}"
            found.broken[reference] = ArgumentProblem(place, message)
        else:
            found.functions[reference], found.compiled[reference] = inspected


def _load(path: Path) -> dict[str, tuple[FunctionType, Definition]]:
    """Import a file, and return the functions that it defines and marks, by name."""
    if not path.stem.isidentifier():
        raise ImportError("the file name is not a valid Python module name")
    name = _module_name(path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    # No other attribute of the values is read: what a file defines may raise at each of them.
    functions = {
        str(key): value for key, value in vars(module).items() if type(value) is FunctionType
    }
    return {
        key: (function, definition)
        for key, function in functions.items()
        if function.__module__ == name  # otherwise the module has imported it
        and isinstance(definition := vars(function).get(ATTRIBUTE), Definition)
    }


def _inspect(
    reference: str, function: FunctionType, definition: Definition
) -> tuple[PythonFunction, Compiled]:
    """Inspect and compile a function. Raises SignatureError, and what its author's code raises."""
    if not reference.rpartition(".")[2].isidentifier():
        raise SignatureError("its name is not one that Python code can write")
    if len(reference) > MAX_REFERENCE:
        raise SignatureError(f"file and name have more than {MAX_REFERENCE} characters")
    inspected = inspect_function(reference, function, definition)
    return inspected, compile_function(inspected)


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
            changed = [name for name, each in modules.items() if sys.modules.get(name) is not each]
            sys.modules.update({name: modules[name] for name in changed})
            root.handlers[:] = handlers
            root.setLevel(level)
            logging.disable(disabled)


def _module_name(path: Path) -> str:
    return f"{PREFIX}.{path.stem}"


def _place(path: Path, line: int) -> str:
    return printable(f"{path.parent.name}/{path.name}:{line}")
