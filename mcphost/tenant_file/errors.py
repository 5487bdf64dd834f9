"""The refusals of a tenant's file.

TenantFileError
├── InvalidFileError  the file has problems, each with its line
│   └── FileNotInspectedError  all of them are that something cannot be inspected now
└── MovedError        the tenant is not as it was when the plan was made
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

MAX_PATH: Final = 300
"""The characters of a path that a problem has: names in a file may be long, and its problems many."""
MAX_PROBLEMS: Final = 1000


def path_text(path: Sequence[str | int]) -> str:
    """Return a path as a problem has it: terminals that print it must not obey it."""
    text = ".".join(str(part)[:MAX_PATH] for part in path)[:MAX_PATH]
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


class FileProblem(NamedTuple):
    """What is wrong with a file. `line` counts from 1; `path` is the member, such as `tools.greet.config.url`."""

    line: int
    path: str
    message: str

    def __str__(self) -> str:
        return (
            f"line {self.line}: {self.path}: {self.message}"
            if self.path
            else f"line {self.line}: {self.message}"
        )


class TenantFileError(Exception):
    """The base class of this package's refusals."""


class InvalidFileError(TenantFileError):
    """The file cannot be applied. `problems` are the first ones, in the order of the file."""

    def __init__(self, problems: Sequence[FileProblem]) -> None:
        self.problems = tuple(sorted(problems)[:MAX_PROBLEMS])
        super().__init__("\n".join(map(str, self.problems)))


class FileNotInspectedError(InvalidFileError):
    """No problem is known, but some of the file cannot be inspected now. `problems` say what."""


class MovedError(TenantFileError):
    """The tenant was changed after the plan was made, or the plan is of another file or tenant."""

    def __init__(self) -> None:
        super().__init__(
            "The tenant or the file has changed since this plan was made. Make a new plan."
        )
