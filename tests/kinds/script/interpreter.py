"""What the interpreter of the sandbox has of Python's library, found out by asking it.

    python -m tests.kinds.script.interpreter

prints what `mcphost/kinds/script/library.py` has to say.
"""

import builtins
import importlib
import json
from collections.abc import Iterator, Sequence

from pydantic_monty import Monty, MontyError, MontySession

from mcphost.kinds.script.library import MODULES

IMPORTS = f"import {', '.join(MODULES)}\n"
SAMPLES = {
    "str": '""', "int": "1", "float": "1.0", "bytes": 'b""', "list": "[]", "dict": "{}", "tuple": "()",
    "set": "set()", "frozenset": "frozenset()", "range": "range(1)", "datetime.date": "datetime.date(2026, 1, 1)",
    "datetime.datetime": "datetime.datetime(2026, 1, 1)", "datetime.timedelta": "datetime.timedelta(1)",
    "datetime.timezone": "datetime.timezone.utc", "datetime.time": "datetime.time(1)",
    "decimal.Decimal": "decimal.Decimal(1)", "re.Pattern": 're.compile("a")', "re.Match": 're.match("a", "a")',
    "collections.deque": "collections.deque()", "collections.Counter": "collections.Counter()",
    "collections.defaultdict": "collections.defaultdict(list)", "ValueError": 'ValueError("a")',
}  # fmt: skip
"""A value of each type, by the type."""


class Interpreter:
    """A session of the sandbox's interpreter that knows the modules."""

    def __init__(self, session: MontySession) -> None:
        self._session = session
        session.feed_run(IMPORTS)

    def has(self, *expressions: str) -> bool:
        """Whether one of the expressions has a value, or fails for another reason than its names."""
        return any(map(self._has, expressions))

    def runs(self, source: str) -> bool:
        """Whether a source runs without an exception."""
        try:
            self._session.feed_run(source)
        except MontyError:
            return False
        return True

    def _has(self, expression: str) -> bool:
        try:
            self._session.feed_run(expression)
        except MontyError as error:
            missing = "has no attribute" in str(error) or "is not defined" in str(error)
            return not missing and "not supported" not in str(error)
        return True

    def missing_members(self) -> Iterator[tuple[str, str]]:
        """Yield the types and the members of theirs that CPython alone has."""
        space: dict[str, object] = {}
        exec(IMPORTS, space)
        for type, value in SAMPLES.items():
            for name in dir(eval(value, space)):
                ways = (f"({value}).{name}", f"({value}).{name}()", f"{type}.{name}()")
                if not name.startswith("_") and not self.has(*ways):
                    yield type, name

    def missing_builtins(self) -> Iterator[str]:
        for name in dir(builtins):
            if not name.startswith("_") and not self.has(name, f"{name}()"):
                yield name

    def names_of(self, module: str) -> Sequence[str]:
        """Return the public names of a module that the interpreter has, and CPython."""
        names = getattr(importlib.import_module(module), "__all__", None)
        names = names or dir(importlib.import_module(module))
        return [n for n in sorted(names) if n[0] != "_" and self.has(f"{module}.{n}")]


def main() -> None:
    with Monty(min_processes=1, max_processes=1) as monty, monty.checkout() as session:
        asked = Interpreter(session)
        print(json.dumps(sorted(asked.missing_members())))
        print(" ".join(asked.missing_builtins()))
        for module in MODULES:
            print(module, " ".join(asked.names_of(module)))


if __name__ == "__main__":
    main()
