"""The form of a tool, prompt, resource or template of one tenant.

It has the common fields, the icons, and the kind's own part: a function granted to the tenant, an
HTTP request, a script, or content written in the console.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings

from mcphost.catalogue import kinds, selectors
from mcphost.catalogue.errors import Invalid
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.console.forms import forms
from mcphost.console.forms.http_part import HttpPart
from mcphost.console.forms.icons import icon_rows
from mcphost.console.forms.kind_parts import (
    FormInput,
    FunctionPart,
    Part,
    PromptPart,
    ResourcePart,
    TemplatePart,
)
from mcphost.console.forms.prompts import plain
from mcphost.console.forms.script_part import ScriptPart
from mcphost.console.words import Words
from mcphost.kinds.primitive_types import PrimitiveType
from mcphost.vault.secrets.selectors import tenant_secrets

PYTHON, TEXT, HTTP, SCRIPT = "python", "text", "http", "script"

_SCOPES_HINT = (
    "Scopes that a caller's token needs besides mcp:list and mcp:call, such as mcp:payroll, "
    "separated by spaces. Empty: none."
)

_HINTS = {
    TEXT: {"title": "Shown to users.", "description": "Tells users and models when to use it."},
    HTTP: {
        "title": "Shown to users.",
        "description": "Tells the model when to use it.",
        "time_limit_seconds": "Seconds for one round. Empty: twice the time-out, and 5 more.",
    },
    SCRIPT: {
        "title": "Shown to users.",
        "description": "Tells the model when to use it. Empty: the docstring of the function.",
        "time_limit_seconds": "Seconds for one round. Empty: the platform's.",
    },
}
"""Hints of the common fields, by kind, where they differ from those of a function."""
_ANSWER_WITHIN_HINT = "Seconds that a question waits for its answer, at most {:g}. Empty: {}."


class PrimitiveForm(forms.ConsoleForm):
    """The fields that an operator may set. `kind` says what the primitive is made from."""

    name = forms.text("Name", spellcheck="false")
    title = forms.text("Title", "Shown to users. Empty: the author's title.")
    description = forms.lines(
        "Description", "Tells the model when to use it. Empty: the author's description."
    )
    scopes = forms.text("Scopes", _SCOPES_HINT, spellcheck="false")
    time_limit_seconds = forms.seconds(
        "Time limit", "Seconds for one round. Empty: the author's value, or else the platform's."
    )

    answer_within_seconds = forms.seconds("Answer time limit")

    def __init__(
        self, words: Words, tenant: UUID, kind: str, sent: FormInput, before: PrimitiveFields | None
    ) -> None:
        starting: dict[str, Any] = {}
        if before is not None:
            starting = {
                "name": before.name,
                "title": before.title,
                "description": before.description,
                "scopes": " ".join(before.scopes),
                "time_limit_seconds": before.time_limit_seconds,
                "answer_within_seconds": before.answer_within_seconds,
            }
        super().__init__(*sent, initial=starting)
        self._words, self.kind = words, kind
        self.fields["name"].help_text = words.name_hint
        for name, hint in _HINTS.get(kind, {}).items():
            self.fields[name].help_text = hint
        if kind == TEXT:
            del self.fields["answer_within_seconds"]
        else:
            empty = (
                "the author's value, or else the platform's" if kind == PYTHON else "the platform's"
            )
            self.fields["answer_within_seconds"].help_text = _ANSWER_WITHIN_HINT.format(
                settings.MCPHOST_MAX_ANSWER_SECONDS, empty
            )
        self.icons = icon_rows(sent, before.icons if before is not None else ())
        self.part = _part(words.sort, tenant, kind, sent, before)

    @property
    def function_first(self) -> bool:
        """Whether the kind's part comes before the name, because the function suggests a name."""
        return self.kind == PYTHON

    @property
    def part_template(self) -> str:
        return f"console/{self.part.template}"

    @property
    def wrong_rows(self) -> bool:
        """Whether there are errors outside of this form's own fields."""
        return self.icons.wrong or self.part.wrong

    def is_valid(self) -> bool:
        valid = [super().is_valid(), self.icons.is_valid(), self.part.is_valid()]
        return all(valid)

    def beside(self, refusal: Invalid) -> forms.Problems:
        return refusal.problems

    def place(self, problems: forms.Problems) -> None:
        """Show problems; those of icons and of the configuration have places of their own."""
        for name, sentences in problems.items():
            root, *path = str(name).split(".")
            if root == "icons":
                self.icons.place((), sentences)
            elif root == "config":
                self.part.place_at(path, sentences)
            else:
                super().place({name: sentences})

    def wanted(self) -> PrimitiveFields:
        """Return the fields for the service to validate."""
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
            answer_within_seconds=given.get("answer_within_seconds"),
            icons=[row.wanted() for row in self.icons],
        )


_ABOUT_TOOLS = {
    HTTP: (
        "An HTTP request",
        "When one request to a service is enough. Address, fields and response, no code",
    ),
    SCRIPT: (
        "A script",
        "When it takes several requests, loops or a decision. Python, written here, in a sandbox",
    ),
    PYTHON: (
        "A Python function",
        "When it needs packages, files or a database. Code that platform staff grant",
    ),
}
"""The label of each kind of tool, and when to choose it."""


@dataclass(frozen=True, slots=True)
class Way:
    """One choice of what to make a new primitive from."""

    kind: str
    label: str
    about: str
    chosen: bool


def ways(words: Words, chosen: str) -> tuple[Way, ...]:
    """Return the ways to make a primitive of a type."""
    if words.sort is PrimitiveType.TOOL:
        about = _ABOUT_TOOLS
    else:
        about = {
            TEXT: (words.text_label, words.text_about),
            PYTHON: ("A Python function", "Code granted by platform staff"),
        }
    return tuple(Way(kind, *told, chosen == kind) for kind, told in about.items())


def kind_for(tenant: UUID, sort: PrimitiveType, wanted: str) -> str:
    """Return the kind of a new primitive: the wanted one, if the type has it, or else the type's
    first. For a tool that is a function, if the tenant has any."""
    if sort is not PrimitiveType.TOOL:
        return PYTHON if wanted == PYTHON else TEXT
    if wanted in _ABOUT_TOOLS:
        return wanted
    return PYTHON if granted(tenant, sort) else HTTP


def author_texts(tenant: UUID, sort: PrimitiveType) -> Mapping[str, Mapping[str, str]]:
    """Return the author's texts for each granted function, which the form suggests."""
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


def granted(tenant: UUID, sort: PrimitiveType) -> Sequence[selectors.FunctionRow]:
    """Return the functions of a primitive type that a tenant may use."""
    return [row for row in selectors.functions(tenant) if row.granted and row.sort is sort]


def _part(
    sort: PrimitiveType, tenant: UUID, kind: str, sent: FormInput, before: PrimitiveFields | None
) -> Part:
    config = before.config if before is not None else {}
    if kind == PYTHON:
        choices = [(row.reference, row.label) for row in granted(tenant, sort) if row.known]
        chosen = config.get("function", "")
        if chosen and chosen not in dict(choices):
            choices.append((chosen, f"{chosen} (not available)"))
        return FunctionPart(sent, config, [("", "Choose a function…"), *choices])
    if kind in (HTTP, SCRIPT):
        secrets = [row.name for row in tenant_secrets(tenant)]
        return (
            HttpPart(sent, config, secrets) if kind == HTTP else ScriptPart(sent, config, secrets)
        )
    if sort is PrimitiveType.PROMPT:
        return PromptPart(sent, config)
    return (
        ResourcePart(sent, config) if sort is PrimitiveType.RESOURCE else TemplatePart(sent, config)
    )
