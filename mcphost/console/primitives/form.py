"""The form of a tool, prompt, resource or template of one tenant.

It has the common fields, the icons, and the part of the kind (`forms.kind_forms`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.conf import settings
from django.forms import BoundField

from mcphost.catalogue import kinds
from mcphost.catalogue.errors import InvalidPrimitiveError
from mcphost.catalogue.fields import PrimitiveFields
from mcphost.catalogue.models import MAX_NOTE
from mcphost.catalogue.rows import FunctionRow
from mcphost.console.forms import forms
from mcphost.console.forms.icons import icon_rows
from mcphost.console.forms.kind_forms import HTTP, PYTHON, SCRIPT, TEXT, part_of
from mcphost.console.forms.kind_parts import FormInput, ResourcePart, TemplatePart
from mcphost.console.forms.prompts import plain
from mcphost.console.forms.script_part import ScriptPart
from mcphost.console.primitive_words import Words
from mcphost.console.templatetags.console import lasted
from mcphost.kinds.primitive_types import PrimitiveType

_SCOPES_HINT = (
    "Scopes that a caller's token needs besides mcp:list and mcp:call, such as mcp:payroll, "
    "separated by spaces. Empty: none."
)

_HINTS = {
    TEXT: {"title": "Shown to users.", "description": "Tells users and models when to use it."},
    HTTP: {
        "title": "Shown to users.",
        "description": "Tells the model when to use it.",
        "time_limit_seconds": "For one run of the tool. Empty: twice the time-out, and 5 seconds more.",
    },
    SCRIPT: {
        "title": "Shown to users.",
        "description": "Tells the model when to use it. Empty: the docstring of the function.",
        "time_limit_seconds": "For one run of the tool. Empty: the platform's limit.",
    },
}
"""Hints of the common fields, by kind, where they differ from those of a function."""
_ANSWER_WITHIN_HINT = "How long a question waits for its answer, at most {}. Empty: {}."

_TARGET_HINT = (
    "How long people should need for an answer, at most. Open questions that are older are "
    "marked as overdue. Takes effect when it is saved. Empty: none."
)


class PrimitiveForm(forms.ConsoleForm):
    """The fields that an operator may set. `kind` says what the primitive is made from."""

    name = forms.text("Name", spellcheck="false")
    title = forms.text("Title", "Shown to users. Empty: the function's own title.")
    description = forms.lines(
        "Description", "Tells the model when to use it. Empty: the function's own description."
    )
    scopes = forms.text("Scopes", _SCOPES_HINT, spellcheck="false")
    time_limit_seconds = forms.seconds(
        "Time limit", "For one run. Empty: the function's own value, or else the platform's limit."
    )

    answer_within_seconds = forms.seconds("Answer time limit")
    target_seconds = forms.seconds("Target time for answers", _TARGET_HINT)
    note = forms.lines(
        "Note", "What this version changes, and why. Kept with it.", rows=2, maxlength=MAX_NOTE
    )

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
                "time_limit_seconds": _shortest(before.time_limit_seconds),
                "answer_within_seconds": _shortest(before.answer_within_seconds),
                "target_seconds": _shortest(before.target_seconds),
            }
        super().__init__(*sent, initial=starting)
        self._words, self.kind = words, kind
        self.fields["name"].help_text = words.name_hint
        for name, hint in _HINTS.get(kind, {}).items():
            self.fields[name].help_text = hint
        if kind == TEXT:
            del self.fields["answer_within_seconds"], self.fields["target_seconds"]
        else:
            empty = (
                "the function's own value, or else the platform's"
                if kind == PYTHON
                else "the platform's"
            )
            self.fields["answer_within_seconds"].help_text = _ANSWER_WITHIN_HINT.format(
                lasted(settings.MCPHOST_MAX_ANSWER_SECONDS), empty
            )
        self.icons = icon_rows(sent, before.icons if before is not None else ())
        config = before.config if before is not None else {}
        self.part = part_of(words.primitive_type, tenant, kind, sent, config)
        if isinstance(self.part, ScriptPart):
            # The code comes next: it should be in sight.
            own = {"placeholder": self.part.description, "rows": 2}
            self.fields["description"].widget.attrs.update(own)

    def fix_names(self) -> None:
        """Show the name and the URI, which clients know already, as values that cannot be edited.

        The services refuse others; these fields are sent all the same, so that a saved form is complete.
        """
        fixed = [self.fields["name"]]
        if isinstance(self.part, ResourcePart | TemplatePart):
            fixed.append(self.part.fields["uri"])
        for field in fixed:
            field.widget.attrs["readonly"] = True
            field.help_text = "Cannot be changed, because clients already use it."

    @property
    def function_first(self) -> bool:
        """Whether the kind's part comes before the name, because the function suggests a name."""
        return self.kind == PYTHON

    @property
    def sections(self) -> forms.Choices:
        """The anchors and titles of what the page has, in its order."""
        name, own = ("name", "Name"), self.part.sections
        first = (*own, name) if self.function_first else (name, *own)
        trial = (("try", "Trial"),) if self._words.primitive_type is PrimitiveType.TOOL else ()
        return (*first, ("access", "Access"), ("version", "Version"), *trial)

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

    def beside(self, refusal: InvalidPrimitiveError) -> forms.Problems:
        return refusal.problems

    def show_problems(self, problems: forms.Problems) -> None:
        """Show problems; those of icons and of the configuration have places of their own."""
        for name, sentences in problems.items():
            root, *path = str(name).split(".")
            if root == "icons":
                self.icons.show_problems_at((), sentences)
            elif root == "config":
                self.part.show_problems_at(path, sentences)
            else:
                super().show_problems({name: sentences})

    def show_more_problems(self, check: Callable[[PrimitiveFields], object]) -> None:
        """Show what `check` finds wrong with the fields besides this form's own errors, so that all are
        corrected at once. `check` raises Invalid."""
        config = self.part.readable_config()
        try:
            check(self._fields_with({} if config is None else config))
        except InvalidPrimitiveError as refusal:
            for path, sentences in refusal.problems.items():
                field = self.field_at(path)
                is_known = config is not None or path.partition(".")[0] != "config"
                if is_known and not (field and field.errors):
                    self.show_problems({path: sentences})

    def field_at(self, path: str) -> BoundField | None:
        """Return the field that shows what is at a path, such as `config.request.url`."""
        root, *inside = path.split(".")
        if root == "config":
            return self.part.field_at(inside)
        return self[root] if root in self.fields else None

    def primitive_fields(self) -> PrimitiveFields:
        """Return the fields for the service to validate."""
        return replace(
            self._fields_with(self.part.config()), icons=[row.as_config() for row in self.icons]
        )

    def _fields_with(self, config: Mapping[str, Any]) -> PrimitiveFields:
        """Return the fields with a configuration, without icons; those with errors are empty."""
        submitted = self.cleaned_data
        return PrimitiveFields(
            primitive_type=self._words.primitive_type,
            name=submitted.get("name", ""),
            kind=self.kind,
            config=config,
            title=submitted.get("title", ""),
            description=plain(submitted.get("description", "")),
            scopes=submitted.get("scopes", "").replace(",", " ").split(),
            time_limit_seconds=submitted.get("time_limit_seconds"),
            answer_within_seconds=submitted.get("answer_within_seconds"),
            target_seconds=submitted.get("target_seconds"),
        )


def _shortest(seconds: float | None) -> float | None:
    """Return whole seconds without a fraction, as people write them."""
    return int(seconds) if seconds is not None and seconds.is_integer() else seconds


def author_texts(functions: Sequence[FunctionRow]) -> Mapping[str, Mapping[str, str]]:
    """Return the author's texts for each known function, which the form suggests."""
    authors = {
        row.reference: kinds.compiled_function(row.reference) for row in functions if row.in_code
    }
    return {
        reference: {"name": text.name, "title": text.title, "description": text.description}
        for reference, text in authors.items()
    }
