"""Finds the functions in folders with tools. Each `*.py` is imported once; a broken file does not
affect others."""

import importlib.util
import inspect
import sys
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from mcphost.kinds.functions.schemas import SignatureError
from mcphost.kinds.python.completers import completer_of
from mcphost.kinds.python.function import Definition, PythonFunction, inspect_function
from mcphost.runtime.schema import ArgumentProblem
from mcphost.sdk.marking import ATTRIBUTE

PREFIX = "mcphost_tools"
"""Modules are imported as `mcphost_tools.<stem>`, so that they cannot shadow other modules."""


@dataclass(slots=True)
class FoundFunctions:
    """The functions of some folders, by reference (`<stem>.<name>`), and the problems, by reference or
    stem."""

    functions: dict[str, PythonFunction] = field(default_factory=dict)
    broken: dict[str, ArgumentProblem] = field(default_factory=dict)

    def why_not(self, reference: str) -> str:
        """Return the reason why there is no such function."""
        for name in (reference, reference.partition(".")[0]):
            if name in self.broken:
                return str(self.broken[name])
        return f"There is no tool function {reference!r}."


def discover(*folders: Path) -> FoundFunctions:
    """Import the folders' files and inspect every marked function. Raises nothing but
    KeyboardInterrupt.

    A problem's path is `<folder>/<file>:<line>`. Files whose name begins with `_` are ignored, and
    those of a name that an earlier folder has are broken.
    """
    found = FoundFunctions()
    taken: dict[str, Path] = {}
    for folder in folders:
        if not folder.is_dir():
            problem = ArgumentProblem(str(folder), "there is no such folder of tools")
            found.broken[folder.name] = problem
        for path in sorted(folder.glob("[!_]*.py")):
            first = taken.setdefault(path.stem, path)
            if first is path:
                _read(path, found)
            else:
                found.broken[str(path)] = ArgumentProblem(str(path), f"{first} has the same name")
    return found


def _read(path: Path, found: FoundFunctions) -> None:
    try:
        module = _load(path)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a file may raise anything, sys.exit() too
        text = error.msg if isinstance(error, SyntaxError) else str(error)
        message = f"{type(error).__name__}: {text.strip().partition(chr(10))[0]}"
        if isinstance(error, SyntaxError) and error.filename == str(path):
            line = error.lineno or 1
        else:  # the last line of the file that the error came through
            frames = traceback.extract_tb(error.__traceback__)
            lines = (f.lineno or 1 for f in reversed(frames) if f.filename == str(path))
            line = next(lines, 1)
        found.broken[path.stem] = ArgumentProblem(_place(path, line), message)
        return
    for name, function in list(vars(module).items()):
        definition = getattr(function, ATTRIBUTE, None)
        if not inspect.isfunction(function) or not isinstance(definition, Definition):
            continue
        if function.__module__ != module.__name__:  # the module has imported it
            continue
        reference = f"{path.stem}.{name}"
        try:
            offered = inspect_function(reference, function, definition)
            completer_of(offered)  # a function with a broken completer is broken
            found.functions[reference] = offered
        except SignatureError as error:
            line = inspect.unwrap(function).__code__.co_firstlineno
            found.broken[reference] = ArgumentProblem(_place(path, line), f"{name}: {error}")


def _load(path: Path) -> ModuleType:
    if not path.stem.isidentifier():
        raise ImportError("the file name is not a valid Python module name")
    spec = importlib.util.spec_from_file_location(f"{PREFIX}.{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[spec.name]
        raise
    return module


def _place(path: Path, line: int) -> str:
    return f"{path.parent.name}/{path.name}:{line}"
