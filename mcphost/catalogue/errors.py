"""What the catalogue's services refuse.

CatalogueError
├── Invalid          a field holds what a tool cannot have
├── WrongStateError  the tool's state does not allow the verb
└── UnknownError     there is no such tool, or no such open tenant
"""

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from mcphost.catalogue.states import State, Verb


class CatalogueError(Exception):
    """The root of what this room refuses."""


class Invalid(CatalogueError):  # noqa: N818 - it reads as what it says of the form
    """Some fields hold what a tool cannot have.

    `problems` maps a field of `PrimitiveFields` to sentences. A problem inside the kind's configuration
    has a dotted field, e.g. `config.function`.
    """

    def __init__(self, problems: Mapping[str, Sequence[str]]) -> None:
        self.problems = {field: list(messages) for field, messages in problems.items()}
        super().__init__("; ".join(f"{f}: {' '.join(m)}" for f, m in self.problems.items()))

    def beside(self, fields: Collection[str]) -> dict[str | None, list[str]]:
        """The problems by the fields of a form that has `fields`, None for what fits beside none.

        `config.function` goes to `config.function`, else to `function`, else to `config`.
        """
        placed: dict[str | None, list[str]] = {}
        for field, messages in self.problems.items():
            root, _, leaf = field.partition(".")
            place = next((name for name in (field, leaf, root) if name in fields), None)
            placed.setdefault(place, []).extend(messages)
        return placed


class WrongStateError(CatalogueError):
    """The tool's state does not allow the verb."""

    def __init__(self, name: str, state: State, verb: Verb) -> None:
        self.state, self.verb = state, verb
        super().__init__(f"cannot {verb.value} {name}: it is {state.value}")


class UnknownError(CatalogueError):
    """There is no such tool, or no such tenant that is open: nothing there can be changed."""

    def __init__(self, what: str, id: UUID | str) -> None:
        super().__init__(f"unknown {what}: {id}")
