"""The list of mutants, as it is written in the files beside this one."""

import tomllib
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent.parent


class Mutant(NamedTuple):
    """One mistake in the product, and the tests that must notice it. `file` is relative to ROOT."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    @property
    def package(self) -> str:
        """The first part of the name: a package of `mcphost/`, or a module beside the packages."""
        return self.name.partition(".")[0]

    def mutated(self, source: str) -> str:
        """Return the source of `file` with the mistake. Raises ValueError unless `old` is in it once."""
        if source.count(self.old) != 1:
            raise ValueError(
                f"{self.name}: {self.file} has this {source.count(self.old)} times: {self.old}"
            )
        return source.replace(self.old, self.new)


def mutants() -> tuple[Mutant, ...]:
    """Return all mutants, sorted by package, in the order of their file."""
    return tuple(
        Mutant(f"{path.stem}.{name}", **{**entry, "tests": tuple(entry["tests"])})
        for path in sorted(Path(__file__).parent.glob("*.toml"))
        for name, entry in tomllib.loads(path.read_text()).items()
    )
