"""Form base class and field types. Services find the problems; forms show them beside the fields.

Hints are our own text, never data, but are escaped all the same.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from django import forms

from mcphost.catalogue.errors import InvalidPrimitiveError
from mcphost.tenants.errors import InvalidError

Result = TypeVar("Result")
Problems = Mapping[Any, Sequence[str]]
"""Sentences by field name; None, or a field that the form lacks, stands for the whole form."""
Choices = Sequence[tuple[str, str]]

TASKS: Choices = (
    ("never", "Never"),
    ("slow", "When it is slow"),
    ("always", "Always, if the client can follow tasks"),
    ("required", "Always; other clients are refused"),
)


class ConsoleForm(forms.Form):
    """A form as the console's templates render it."""

    use_required_attribute = False

    def attempt(self, verb: Callable[[], Result]) -> Result | None:
        """Return a service's result; None if it refused, with the reasons beside the fields."""
        try:
            return verb()
        except InvalidPrimitiveError as refusal:
            self.show_problems(self.beside(refusal))
        except InvalidError as refusal:
            self.show_problems(refusal.problems)
        return None

    def beside(self, refusal: InvalidPrimitiveError) -> Problems:
        """Return the problems of a refusal by the fields of this form that show them."""
        return refusal.beside(self.fields)

    def show_problems(self, problems: Problems) -> None:
        """Show each sentence beside its field, or above the form if it has no such field."""
        for name, sentences in problems.items():
            beside = name if name in self.fields else None
            self.add_error(beside, [forms.ValidationError(sentence) for sentence in sentences])


def text(label: str, hint: str = "", *, required: bool = False, **attrs: Any) -> forms.CharField:
    """One line."""
    widget = forms.TextInput(attrs={"autocomplete": "off", **attrs})
    return forms.CharField(label=label, help_text=hint, required=required, widget=widget)


def lines(label: str, hint: str = "", rows: int = 4, **attrs: Any) -> forms.CharField:
    """Several lines, not stripped."""
    widget = forms.Textarea(attrs={"rows": rows, **attrs})
    return forms.CharField(label=label, help_text=hint, required=False, strip=False, widget=widget)


class NumberWithUnit(forms.NumberInput):
    """A number; the page shows its unit beside it."""

    def __init__(self, unit: str, **attrs: str) -> None:
        super().__init__(attrs=attrs)
        self.unit = unit


def number(label: str, unit: str, hint: str = "") -> forms.IntegerField:
    """An optional whole number."""
    widget = NumberWithUnit(unit, inputmode="numeric")
    return forms.IntegerField(label=label, help_text=hint, required=False, widget=widget)


def seconds(label: str, hint: str = "") -> forms.FloatField:
    """An optional number of seconds."""
    widget = NumberWithUnit("seconds", step="any")
    return forms.FloatField(label=label, help_text=hint, required=False, widget=widget)


def switch(label: str, hint: str = "") -> forms.BooleanField:
    """On or off."""
    return forms.BooleanField(label=label, help_text=hint, required=False)


def select(label: str, hint: str = "", choices: Choices = (), **options: Any) -> forms.ChoiceField:
    """One of several."""
    return forms.ChoiceField(
        label=label,
        help_text=hint,
        choices=choices,
        **{"required": False, **options},
    )


def tasks() -> forms.ChoiceField:
    """When a call of a tool becomes a task."""
    hint = "When a call becomes a task, which outlives its request."
    return select("As a task", hint, choices=TASKS)


def checkboxes(label: str, hint: str = "") -> forms.MultipleChoiceField:
    """Any of several."""
    return forms.MultipleChoiceField(
        label=label,
        help_text=hint,
        required=False,
        widget=forms.CheckboxSelectMultiple(),
    )


def file(label: str, hint: str = "", accept: str = "") -> forms.FileField:
    """A file."""
    attrs = {"class": "c-file-input", **({"accept": accept} if accept else {})}
    widget = forms.FileInput(attrs=attrs)
    return forms.FileField(label=label, help_text=hint, required=False, widget=widget)


def email(label: str) -> forms.EmailField:
    """An optional e-mail address."""
    return forms.EmailField(label=label, required=False)


def password(label: str, hint: str = "", autocomplete: str = "new-password") -> forms.CharField:
    """A password, not stripped."""
    widget = forms.PasswordInput(attrs={"autocomplete": autocomplete})
    return forms.CharField(label=label, help_text=hint, strip=False, widget=widget)
