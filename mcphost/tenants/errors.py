"""What is said when a change to a tenant is refused."""

from collections.abc import Mapping, Sequence


class InvalidError(Exception):
    """Values that cannot be kept. `problems` has what is wrong, by field, for beside the field."""

    def __init__(self, problems: Mapping[str, Sequence[str]]) -> None:
        self.problems = {name: list(messages) for name, messages in problems.items()}
        super().__init__(
            "; ".join(f"{name}: {' '.join(texts)}" for name, texts in self.problems.items())
        )


class UnknownTenantError(LookupError):
    """There is no such tenant, or it is closed: nothing about it can be changed any more."""

    def __init__(self) -> None:
        super().__init__("no open tenant of that name or id")
