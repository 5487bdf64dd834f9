"""The form of a tool, made for one tenant: of the functions, only those it was granted."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from mcphost.catalogue import kinds, selectors
from mcphost.catalogue.errors import Invalid
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.console import forms
from mcphost.console.icon_rows import icon_rows

KIND = "python"

_NAME_HINT = "What clients call it: 1 to 64 letters, digits, _ - and dots. Fixed once published."
_SCOPES_HINT = (
    "What a caller's token must hold besides mcp:list and mcp:call, such as mcp:payroll, separated "
    "by spaces. Empty: nothing more."
)


class ToolForm(forms.ConsoleForm):
    """What an operator may set of a tool."""

    function = forms.select("Function", "The code that runs. Platform staff grant functions.")
    name = forms.text("Name", _NAME_HINT, spellcheck="false")
    title = forms.text("Title", "What people see. Empty: as its author wrote it.")
    description = forms.lines(
        "Description", "What the model reads to decide. Empty: as its author wrote it."
    )
    scopes = forms.text("Scopes", _SCOPES_HINT, spellcheck="false")
    time_limit_seconds = forms.seconds(
        "Time limit", "Seconds for one round. Empty: the author's, or else the platform's."
    )

    def __init__(self, tenant: UUID, data: Any, files: Any, before: PrimitiveFields | None = None):
        super().__init__(data, files, initial=_starting(before) if before is not None else None)
        self.icons = icon_rows((data, files), before.icons if before is not None else ())
        chosen = kinds.function_of(before.kind, before.config) if before is not None else ""
        self.fields["function"].choices = _choices(tenant, chosen)  # type: ignore[attr-defined]
        self._before = before

    def is_valid(self) -> bool:
        return all([super().is_valid(), self.icons.is_valid()])

    @property
    def wrong_rows(self) -> bool:
        """Whether something is said beside a row, or above the rows."""
        return self.icons.wrong

    def beside(self, refusal: Invalid) -> forms.Problems:
        return refusal.beside([*self.fields, "icons"])

    def place(self, problems: forms.Problems) -> None:
        """Problems of icons belong above their rows; each says which it means."""
        self.icons.place((), problems.get("icons", ()))
        super().place({name: said for name, said in problems.items() if name != "icons"})

    def wanted(self) -> PrimitiveFields:
        """The fields for the service to judge."""
        given = self.cleaned_data
        return PrimitiveFields(
            name=given["name"],
            kind=self._before.kind if self._before is not None else KIND,
            config={"function": given["function"]},
            title=given["title"],
            description=given["description"].replace("\r\n", "\n"),
            scopes=given["scopes"].replace(",", " ").split(),
            time_limit_seconds=given["time_limit_seconds"],
            icons=[row.wanted() for row in self.icons],
        )


def said_by_authors(tenant: UUID) -> Mapping[str, Mapping[str, str]]:
    """What the code says of each granted function, for the form to suggest."""
    found = {}
    for row in granted(tenant):
        if row.known:
            said = kinds.compiled_function(row.reference)
            found[row.reference] = {
                "name": said.name,
                "title": said.title,
                "description": said.description,
            }
    return found


def granted(tenant: UUID) -> Sequence[selectors.FunctionRow]:
    """The functions that a tenant may use, also those that the code has no more."""
    return [row for row in selectors.functions(tenant) if row.granted]


def _choices(tenant: UUID, chosen: str) -> list[tuple[str, str]]:
    choices = [(row.reference, row.label) for row in granted(tenant) if row.known]
    if chosen and chosen not in dict(choices):
        choices.append((chosen, f"{chosen} (not available)"))
    return [("", "Choose a function…"), *choices]


def _starting(fields: PrimitiveFields) -> dict[str, Any]:
    return {
        "function": kinds.function_of(fields.kind, fields.config),
        "name": fields.name,
        "title": fields.title,
        "description": fields.description,
        "scopes": " ".join(fields.scopes),
        "time_limit_seconds": fields.time_limit_seconds,
    }
