"""The form of a tool, prompt, resource or template, made for one tenant.

The common fields, the icons, and the part that is the kind's own: a function of those that the
tenant was granted, or what is written in the console.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from mcphost.catalogue import kinds, selectors
from mcphost.catalogue.errors import Invalid
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.console import forms
from mcphost.console.icon_rows import icon_rows
from mcphost.console.parts import (
    FunctionPart,
    Part,
    PromptPart,
    ResourcePart,
    Sent,
    TemplatePart,
)
from mcphost.console.prompt_rows import plain
from mcphost.console.words import Words
from mcphost.kinds.sorts import Sort

PYTHON, TEXT = "python", "text"

_SCOPES_HINT = (
    "What a caller's token must hold besides mcp:list and mcp:call, such as mcp:payroll, separated "
    "by spaces. Empty: nothing more."
)


class PrimitiveForm(forms.ConsoleForm):
    """What an operator may set. `kind` says what it is made from."""

    name = forms.text("Name", spellcheck="false")
    title = forms.text("Title", "What people see. Empty: as its author wrote it.")
    description = forms.lines(
        "Description", "What the model reads to decide. Empty: as its author wrote it."
    )
    scopes = forms.text("Scopes", _SCOPES_HINT, spellcheck="false")
    time_limit_seconds = forms.seconds(
        "Time limit", "Seconds for one round. Empty: the author's, or else the platform's."
    )

    def __init__(
        self, words: Words, tenant: UUID, kind: str, sent: Sent, before: PrimitiveFields | None
    ) -> None:
        super().__init__(*sent, initial=_starting(before) if before is not None else None)
        self._words, self.kind = words, kind
        self._say_in_words()
        self.icons = icon_rows(sent, before.icons if before is not None else ())
        self.part = _part(words.sort, tenant, kind, sent, before)

    def _say_in_words(self) -> None:
        self.fields["name"].help_text = self._words.name_hint
        if self.kind == TEXT:
            self.fields["title"].help_text = "What people see."
            self.fields["description"].help_text = "What people and models read to decide."

    @property
    def function_first(self) -> bool:
        """Whether the part stands before the name, because it suggests one."""
        return self.kind == PYTHON

    @property
    def part_template(self) -> str:
        return f"console/{self.part.template}"

    @property
    def wrong_rows(self) -> bool:
        """Whether something is said outside of this form's own fields."""
        return self.icons.wrong or self.part.wrong

    def is_valid(self) -> bool:
        valid = [super().is_valid(), self.icons.is_valid(), self.part.is_valid()]
        return all(valid)

    def beside(self, refusal: Invalid) -> forms.Problems:
        return refusal.problems

    def place(self, problems: forms.Problems) -> None:
        """Problems of icons and of the configuration have places of their own."""
        for name, sentences in problems.items():
            root, *path = str(name).split(".")
            if root == "icons":
                self.icons.place((), sentences)
            elif root == "config":
                self.part.place_at(path, sentences)
            else:
                super().place({name: sentences})

    def wanted(self) -> PrimitiveFields:
        """The fields for the service to judge."""
        given = self.cleaned_data
        return PrimitiveFields(
            sort=self._words.sort,
            name=given["name"],
            kind=self.kind,
            config=self.part.config(),
            title=given["title"],
            description=plain(given["description"]),
            scopes=given["scopes"].replace(",", " ").split(),
            time_limit_seconds=given["time_limit_seconds"],
            icons=[row.wanted() for row in self.icons],
        )


@dataclass(frozen=True, slots=True)
class Way:
    """What something new can be made from."""

    kind: str
    label: str
    about: str
    chosen: bool


def ways(words: Words, chosen: str) -> tuple[Way, ...]:
    """The ways to make something of a sort; none where there is no choice."""
    if not can_be_written(words.sort):
        return ()
    return (
        Way(TEXT, words.text_label, words.text_about, chosen == TEXT),
        Way(PYTHON, "A Python function", "Code that staff granted", chosen == PYTHON),
    )


def kind_for(sort: Sort, wanted: str) -> str:
    """What something new is made from."""
    return TEXT if wanted != PYTHON and can_be_written(sort) else PYTHON


def can_be_written(sort: Sort) -> bool:
    """Whether something of a sort needs no function."""
    return TEXT in kinds.KINDS and sort in kinds.KINDS[TEXT].sorts


def said_by_authors(tenant: UUID, sort: Sort) -> Mapping[str, Mapping[str, str]]:
    """What the code says of each granted function, for the form to suggest."""
    found = {}
    for row in granted(tenant, sort):
        if row.known:
            said = kinds.compiled_function(row.reference)
            found[row.reference] = {
                "name": said.name,
                "title": said.title,
                "description": said.description,
            }
    return found


def granted(tenant: UUID, sort: Sort) -> Sequence[selectors.FunctionRow]:
    """The functions of a sort that a tenant may use."""
    return [row for row in selectors.functions(tenant) if row.granted and row.sort is sort]


def _part(sort: Sort, tenant: UUID, kind: str, sent: Sent, before: PrimitiveFields | None) -> Part:
    config = before.config if before is not None else {}
    if kind == PYTHON:
        return FunctionPart(sent, config, _choices(tenant, sort, config.get("function", "")))
    if sort is Sort.PROMPT:
        return PromptPart(sent, config)
    return ResourcePart(sent, config) if sort is Sort.RESOURCE else TemplatePart(sent, config)


def _choices(tenant: UUID, sort: Sort, chosen: str) -> list[tuple[str, str]]:
    choices = [(row.reference, row.label) for row in granted(tenant, sort) if row.known]
    if chosen and chosen not in dict(choices):
        choices.append((chosen, f"{chosen} (not available)"))
    return [("", "Choose a function…"), *choices]


def _starting(fields: PrimitiveFields) -> dict[str, Any]:
    return {
        "name": fields.name,
        "title": fields.title,
        "description": fields.description,
        "scopes": " ".join(fields.scopes),
        "time_limit_seconds": fields.time_limit_seconds,
    }
