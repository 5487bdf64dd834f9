"""The errors of refused changes to tenants."""

from collections.abc import Mapping, Sequence


class InvalidError(Exception):
    """Values that cannot be stored. `problems` has sentences by field, to show beside the field."""

    def __init__(self, problems: Mapping[str, Sequence[str]]) -> None:
        self.problems = {name: list(messages) for name, messages in problems.items()}
        super().__init__(
            "; ".join(f"{name}: {' '.join(texts)}" for name, texts in self.problems.items())
        )


class UnknownTenantError(LookupError):
    """There is no such tenant, or it is closed, so that it cannot be changed."""

    def __init__(self) -> None:
        super().__init__("no open tenant of that name or id")
