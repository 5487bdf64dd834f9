"""A form for the arguments of a tool, drawn from its JSON Schema.

The user fills in fields or writes all arguments as JSON. The names of the HTML fields are made so
that no property name collides with another field. A schema that no form can express has JSON only.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from django import forms as django_forms
from django.core.exceptions import ValidationError
from django.forms import BoundField

from mcphost.console.forms import forms
from mcphost.console.forms.json_texts import CODE, json_text, parse_json
from mcphost.console.forms.schema_fields import LEFT_OUT, field_of, initial_of
from mcphost.runtime.schema import ArgumentProblem, UnusableSchemaError, Validator

FORM, JSON = "form", "json"
MODES: Final = ((FORM, "Form"), (JSON, "JSON"))
MAX_FIELDS: Final = 100
MAX_JSON: Final = 512 * 1024
"""The most characters of arguments that are written as JSON."""

_NO_FORM: Final = {
    "properties": "The schema of the arguments has no properties that a form could show.",
    "many": f"The schema has more than {MAX_FIELDS} properties, too many for a form.",
    "required": "The schema requires properties that it does not describe.",
}


class ValueFields(forms.ConsoleForm):
    """A form with a field for each property of a schema."""

    def __init__(
        self,
        schema: Mapping[str, Any],
        data: Any = None,
        prefix: str = "",
        starting: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(data, prefix=prefix)
        self.schema = schema
        self._names: dict[str, str] = {}
        properties, required = schema.get("properties", {}), schema.get("required", ())
        for name, property_ in properties.items():
            drawn = field_of(name, property_, schema, required=name in required)
            if starting is not None:
                has_value = name in starting
                drawn.initial = initial_of(drawn, starting[name]) if has_value else None
            key = f"value-{quote(name, safe='', errors='surrogatepass')}"
            self._names[name], self.fields[key] = key, drawn

    @property
    def values(self) -> list[BoundField]:
        """The fields of the properties, in the schema's order."""
        return [self[key] for key in self._names.values()]

    def filled_values(self) -> dict[str, Any]:
        """Return the values of the fields that are neither empty nor wrong."""
        cleaned = {name: self.cleaned_data.get(key, LEFT_OUT) for name, key in self._names.items()}
        return {name: value for name, value in cleaned.items() if value is not LEFT_OUT}

    def check_values(self) -> None:
        """Compare the values with the schema, and show each problem beside its field."""
        try:
            problems = Validator(self.schema, formats=True).problems(self.filled_values())
        except UnusableSchemaError:
            return  # the call says what is wrong with it
        wrong = {name for name, key in self._names.items() if key in self.errors}
        for problem in problems:
            name, sentence = self._locate_problem(problem)
            if name is None and not wrong:
                self.add_error(None, sentence)
            elif name is not None and name not in wrong:
                self.add_error(self._names[name], sentence)

    def forget_problems(self) -> None:
        """Forget the problems of the fields, because their values are not used."""
        for key in self._names.values():
            self.errors.pop(key, None)

    def _locate_problem(self, problem: ArgumentProblem) -> tuple[str | None, str]:
        """Return the property that a problem is about, and the problem in words."""
        path = problem.path
        above = (name for name in self._names if f"{path}.".startswith(f"{name}."))
        name = max(above, key=len, default=None)
        if name is None or not path:
            return None, f"{path or 'This'} {problem.message}."
        inner = path[len(name) :].strip(".")
        return name, f"{inner or 'This'} {problem.message}."


class ArgumentsForm(ValueFields):
    """The arguments of a call, in fields or as JSON. `why_json` says why there are no fields."""

    mode = django_forms.ChoiceField(
        label="Enter the arguments as",
        choices=MODES,
        required=False,
        initial=FORM,
        widget=django_forms.RadioSelect(),
    )
    json = forms.lines("Arguments as JSON", "A JSON object: {…}.", 12, **CODE)

    def __init__(
        self, schema: Mapping[str, Any], data: Any, prefix: str, starting: Mapping[str, Any] | None
    ) -> None:
        self.why_json = why_no_form(schema)
        drawn = {} if self.why_json else schema
        super().__init__(drawn, data, prefix, starting)
        mode, text = self.fields["mode"], self.fields["json"]
        text.initial = json_text(starting) if starting else "{}"
        if self.why_json:
            mode.choices, mode.initial = MODES[1:], JSON  # type: ignore[attr-defined]

    @property
    def chosen_mode(self) -> str:
        """The mode that was sent, or the first one."""
        if self.why_json:
            return JSON
        return JSON if self["mode"].value() == JSON else FORM

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if self.chosen_mode == FORM:
            self.check_values()
            return cleaned
        self.forget_problems()
        try:
            self._parsed = json_arguments(cleaned.get("json", ""))
        except ValidationError as error:
            self.add_error("json", error)
        return cleaned

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of a valid form; optional fields that are empty are left out."""
        return self.filled_values() if self.chosen_mode == FORM else self._parsed


def form_of(
    schema: Mapping[str, Any],
    data: Any = None,
    prefix: str = "arguments",
    starting: Mapping[str, Any] | None = None,
) -> ArgumentsForm:
    """Return the form for a tool's input schema; with the values of `starting`, if there are any."""
    return ArgumentsForm(schema, data, prefix, starting)


def json_arguments(text: str) -> dict[str, Any]:
    """Read arguments that were written as JSON. Raises ValidationError; an empty text is `{}`."""
    if len(text) > MAX_JSON:
        raise ValidationError(f"The arguments are longer than {MAX_JSON:,} characters.")
    parsed = parse_json(text) if text.strip() else {}
    if not isinstance(parsed, dict):
        raise ValidationError("Arguments are a JSON object: {…}.")
    return parsed


def why_no_form(schema: Mapping[str, Any]) -> str:
    """Return why no form can be drawn from a schema; empty if one can."""
    return next((_NO_FORM[problem] for problem in _obstacles(schema)), "")


def _obstacles(schema: Mapping[str, Any]) -> Iterator[str]:
    properties, required = schema.get("properties", {}), schema.get("required", [])
    if not isinstance(properties, Mapping) or not isinstance(required, list):
        yield "properties"
    elif len(properties) > MAX_FIELDS:
        yield "many"
    elif any(name not in properties for name in required):
        yield "required"
    elif not properties and _takes_more(schema):
        yield "properties"


def _takes_more(schema: Mapping[str, Any]) -> bool:
    """Whether a schema without properties takes arguments all the same."""
    keywords = schema.keys() & {"$ref", "allOf", "anyOf", "oneOf", "patternProperties"}
    extra = schema.get("additionalProperties", False)
    return bool(keywords) or extra is True or isinstance(extra, Mapping)
