"""The refusals of the catalogue's services.

CatalogueError
├── InvalidPrimitiveError  a field has a value that a primitive cannot have
│   └── NotInspectedError  whether it has one cannot be found out now
├── WrongStateError  the primitive's state does not allow the verb
├── NotDeletableError  the primitive is neither a draft nor archived
├── UnchangedError   the version to publish is the one that was published last
├── StaleError       the working copy, the published version or the state is not the one that the
│                    change was based on
└── UnknownError     there is no such primitive
"""

from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from mcphost.catalogue.states import PrimitiveState, PrimitiveVerb


class CatalogueError(Exception):
    """The base class of this package's refusals."""


class InvalidPrimitiveError(CatalogueError):
    """Some fields have values that a primitive cannot have.

    `problems` maps a field of `PrimitiveFields` to sentences. A problem inside the kind's
    configuration has a dotted field, e.g. `config.function`.
    """

    def __init__(self, problems: Mapping[str, Sequence[str]]) -> None:
        self.problems = {field: list(messages) for field, messages in problems.items()}
        super().__init__("; ".join(f"{f}: {' '.join(m)}" for f, m in self.problems.items()))

    def beside(self, fields: Collection[str]) -> dict[str | None, list[str]]:
        """Return the problems by the fields of a form; those that match none are under None.

        `config.function` goes to `config.function`, else to `function`, else to `config`.
        """
        placed: dict[str | None, list[str]] = {}
        for field, messages in self.problems.items():
            root, _, leaf = field.partition(".")
            target = next((name for name in (field, leaf, root) if name in fields), None)
            placed.setdefault(target, []).extend(messages)
        return placed


class NotInspectedError(InvalidPrimitiveError):
    """The configuration cannot be inspected now, and may be valid. `problems` say so at its field."""


class WrongStateError(CatalogueError):
    """The primitive's state does not allow the verb."""

    def __init__(self, name: str, state: PrimitiveState, verb: PrimitiveVerb) -> None:
        self.state, self.verb = state, verb
        super().__init__(f"cannot {verb.value} {name}: it is {state.value}")


class NotDeletableError(CatalogueError):
    """Only drafts and archived primitives can be deleted."""

    def __init__(self, name: str, state: PrimitiveState) -> None:
        super().__init__(f"{name} is {state.value}: archive it before you delete it")


class UnchangedError(CatalogueError):
    """Publishing would write the last published version again."""

    def __init__(self, name: str, version: str, state: PrimitiveState) -> None:
        enable = " Enable it to serve that version." if state is PrimitiveState.DISABLED else ""
        super().__init__(f"{name} has not changed since version {version} was published.{enable}")


class StaleError(CatalogueError):
    """The working copy, the published version or the state has changed since the user read it."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} was changed meanwhile by another user")


class UnknownError(CatalogueError):
    """There is no such primitive or version, so nothing can be changed."""

    def __init__(self, kind: str, id: UUID | str) -> None:
        super().__init__(f"unknown {kind}: {id}")
